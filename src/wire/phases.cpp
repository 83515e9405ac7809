// The coroutines of a wire lane.
#include "wire/phases.h"

#include "kernels/copy.h"
#include "wire/exchange.h"

namespace fccl {
namespace {

// What goes to a peer beside the entry.
struct Parcel {
  const void* data = nullptr;
  size_t bytes = 0;
};

Parcel parcel_for(int member, const WireLane& lane, const WireTask& task) {
  const Signature& s = task.call.signature;
  const size_t bytes = payload_bytes_of(task);
  if (bytes == 0) return {};
  switch (s.collective) {
    case fcclCollAllGather:
      return {task.input.at(lane.me()), bytes};
    case fcclCollGather:
      return member == task.root ? Parcel{task.input.at(lane.me()), bytes} : Parcel{};
    case fcclCollReduceScatter:
      return {task.input.at(member), bytes};
    case fcclCollScatter:
      return lane.me() == task.root ? Parcel{task.input.at(member), bytes} : Parcel{};
    case fcclCollBroadcast:
      return lane.me() == task.root ? Parcel{task.input.base, bytes} : Parcel{};
    case fcclCollAllReduce:
      return {task.input.base, bytes};
    case fcclCollReduce:
      return member == task.root ? Parcel{task.input.base, bytes} : Parcel{};
    case fcclCollBarrier:
    case fcclNumColls:
      break;
  }
  return {};
}

void collect(WireLane& lane, const WireTask& task) {
  copy_bytes(task.output.at(lane.me()), task.input.at(lane.me()), task.chunk_bytes);
  for (int i = 1; i < lane.members(); ++i) {
    const int peer = lane.peer(i);
    copy_bytes(task.output.at(peer), lane.payload_of(peer).data(), task.chunk_bytes);
  }
}

void reduce(WireLane& lane, const WireTask& task, const void* own, void* result) {
  const Signature& s = task.call.signature;
  for (int member = 0; member < lane.members(); ++member) {
    lane.sources[member] = member == lane.me() ? own : lane.payload_of(member).data();
    if (s.op == ReduceOp::premul_sum) lane.scalars[member] = lane.call_of(member).scalar;
  }
  task.reduce(result, lane.sources.data(), lane.members(), payload_bytes_of(task) / size_of(s.dtype), lane.scalars.data());
}

void take_from_root(WireLane& lane, const WireTask& task, const void* own, void* result) {
  copy_bytes(result, lane.me() == task.root ? own : lane.payload_of(task.root).data(), payload_bytes_of(task));
}

// Every member has entered the same call, with its payload.
void deliver(WireLane& lane, const WireTask& task) {
  if (payload_bytes_of(task) == 0) return;
  const bool is_root = lane.me() == task.root;
  switch (task.call.signature.collective) {
    case fcclCollAllGather:
      return collect(lane, task);
    case fcclCollGather:
      return is_root ? collect(lane, task) : void();
    case fcclCollReduceScatter:
      return reduce(lane, task, task.input.at(lane.me()), task.output.at(lane.me()));
    case fcclCollScatter:
      return take_from_root(lane, task, is_root ? task.input.at(lane.me()) : nullptr, task.output.at(lane.me()));
    case fcclCollBroadcast:
      return take_from_root(lane, task, task.input.base, task.output.base);
    case fcclCollAllReduce:
      return reduce(lane, task, task.input.base, task.output.base);
    case fcclCollReduce:
      return is_root ? reduce(lane, task, task.input.base, task.output.base) : void();
    case fcclCollBarrier:
    case fcclNumColls:
      return;
  }
}

}  // namespace

size_t payload_bytes_of(const WireTask& task) {
  switch (task.call.signature.collective) {
    case fcclCollAllReduce:
    case fcclCollReduce:
    case fcclCollBroadcast:
      return task.total_bytes;
    default:
      return task.chunk_bytes;
  }
}

Phase wire_mailbox([[maybe_unused]] FrameMemory& frame, WireLane& lane, WireTask task) {
  lane.begin(task.call);
  for (int i = 1; i < lane.members(); ++i) {
    const int peer = lane.peer(i);
    co_await lane.may_enter(peer);
    const Parcel parcel = parcel_for(peer, lane, task);
    lane.enter(peer, parcel.data, parcel.bytes);
  }
  lane.progress();
  for (int i = 1; i < lane.members(); ++i) {
    const int peer = lane.peer(i);
    co_await lane.entered(peer);
    if (!lane.agrees(peer)) co_return Outcome{lane.rank_of(peer)};
  }
  deliver(lane, task);
  for (uint64_t seen = lane.events(); !lane.all_posted(); seen = lane.events()) co_await lane.event_after(seen, lane.peer(1));
  co_return Outcome{};
}

Phase wire_exchange([[maybe_unused]] FrameMemory& frame, WireLane& lane, WireTask task) {
  lane.begin(task.call);
  for (int i = 1; i < lane.members(); ++i) {
    const int peer = lane.peer(i);
    co_await lane.may_enter(peer);
    lane.enter(peer, nullptr, 0);
  }
  Exchange exchange(lane, task);
  for (uint64_t seen = lane.events(); !exchange.advance(exchange.slices()); seen = lane.events())
    co_await lane.event_after(seen, exchange.awaited_member());
  co_return exchange.outcome();
}

Poll poll_of(WireLane& lane) {
  return {[](void* context) { static_cast<WireLane*>(context)->progress(); }, &lane};
}

}  // namespace fccl
