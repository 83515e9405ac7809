// The mailbox: small collectives, payload beside the word.
#include <cstddef>

#include "kernels/copy.h"
#include "node/phases.h"

namespace fccl {
namespace {

// What this rank puts beside its word, and which rank's payload each rank reads.
struct Parcel {
  const void* data;
  size_t bytes;
};

Parcel parcel_of(const Call& call, int rank, int ranks) {
  const Signature& s = call.signature;
  const size_t bytes = mailbox_bytes(s, ranks);
  const bool silent = (s.collective == fcclCollBroadcast || s.collective == fcclCollScatter) && s.root != rank;
  return silent ? Parcel{nullptr, 0} : Parcel{call.send, bytes};
}

std::byte* block(void* buffer, int index, size_t bytes) { return static_cast<std::byte*>(buffer) + index * bytes; }
const std::byte* block(const void* buffer, int index, size_t bytes) {
  return static_cast<const std::byte*>(buffer) + index * bytes;
}

void collect_blocks(Lane& lane, const Call& call) {
  const size_t bytes = call.signature.bytes();
  copy_bytes(block(call.recv, lane.rank(), bytes), call.send, bytes);
  for (int i = 1; i < lane.ranks(); ++i) {
    const int peer = lane.peer(i);
    copy_bytes(block(call.recv, peer, bytes), lane.payload_of(peer, bytes), bytes);
  }
}

// Reduces block `index` of every rank's payload into recv.
void reduce_blocks(Lane& lane, const Task& task, int index) {
  const Signature& s = task.call.signature;
  const size_t bytes = mailbox_bytes(s, lane.ranks());
  for (int rank = 0; rank < lane.ranks(); ++rank) {
    const void* payload = rank == lane.rank() ? task.call.send : lane.payload_of(rank, bytes);
    lane.sources[rank] = block(payload, index, s.bytes());
    if (s.op == ReduceOp::premul_sum) lane.scalars[rank] = rank == lane.rank() ? task.call.scalar : lane.record_of(rank).scalar;
  }
  task.reduce(task.call.recv, lane.sources.data(), lane.ranks(), s.count, lane.scalars.data());
}

void take_from_root(Lane& lane, const Call& call, int index) {
  const Signature& s = call.signature;
  const void* payload = s.root == lane.rank() ? call.send : lane.payload_of(s.root, mailbox_bytes(s, lane.ranks()));
  copy_bytes(call.recv, block(payload, index, s.bytes()), s.bytes());
}

// Every rank has entered the same call: takes this rank's part of it out of the boxes.
void deliver(Lane& lane, const Task& task) {
  const Signature& s = task.call.signature;
  if (s.bytes() == 0) return;
  switch (s.collective) {
    case fcclCollAllGather:
      return collect_blocks(lane, task.call);
    case fcclCollGather:
      return s.root == lane.rank() ? collect_blocks(lane, task.call) : void();
    case fcclCollBroadcast:
      return take_from_root(lane, task.call, 0);
    case fcclCollScatter:
      return take_from_root(lane, task.call, lane.rank());
    case fcclCollAllReduce:
      return reduce_blocks(lane, task, 0);
    case fcclCollReduce:
      return s.root == lane.rank() ? reduce_blocks(lane, task, 0) : void();
    case fcclCollReduceScatter:
      return reduce_blocks(lane, task, lane.rank());
    case fcclCollBarrier:
    case fcclNumColls:
      return;
  }
}

}  // namespace

size_t mailbox_bytes(const Signature& signature, int ranks) {
  switch (signature.collective) {
    case fcclCollBarrier:
      return 0;
    case fcclCollReduceScatter:
    case fcclCollScatter:
      return signature.bytes() * ranks;
    default:
      return signature.bytes();
  }
}

Phase alone([[maybe_unused]] FrameMemory& frame, Lane& lane, Task task) {
  deliver(lane, task);
  co_return Outcome{};
}

Phase mailbox([[maybe_unused]] FrameMemory& frame, Lane& lane, Task task) {
  const Parcel parcel = parcel_of(task.call, lane.rank(), lane.ranks());
  lane.enter(task.call, task.number, parcel.data, parcel.bytes);
  for (int i = 1; i < lane.ranks(); ++i) {
    const int peer = lane.peer(i);
    co_await lane.entered(peer);
    if (!lane.agrees(peer)) co_return Outcome{lane.rank_of(peer)};
  }
  deliver(lane, task);
  co_return Outcome{};
}

}  // namespace fccl
