// The ring for collectives that reduce: a rank puts its part of each peer's block into a slot of that pair, and each rank
// reduces its own block straight out of the slots.
#include "kernels/copy.h"
#include "node/phases.h"
#include "node/slices.h"

namespace fccl {
namespace {

// Who owns which block of a vector of `count` elements that `ranks` ranks reduce together: equal blocks, the last ones shorter.
struct Shards {
  size_t count;
  size_t element;
  int ranks;

  size_t bytes_each() const { return (count + ranks - 1) / ranks * element; }
  size_t offset(int rank) const { return std::min(rank * bytes_each(), count * element); }
  size_t bytes(int rank) const { return std::min(bytes_each(), count * element - offset(rank)); }
};

void read_scalars(Lane& lane, const Signature& signature) {
  if (signature.op != ReduceOp::premul_sum) return;
  for (int rank = 0; rank < lane.ranks(); ++rank) lane.scalars[rank] = lane.record_of(rank).scalar;
}

// One slice of this rank's block: its own part, and where the result goes.
struct OwnSlice {
  const std::byte* source;
  std::byte* result;
  size_t bytes;
};

// Reduces it with the peers' parts, which lie in their slots.
void reduce_slice(Lane& lane, const Task& task, uint64_t slice, const OwnSlice& own) {
  for (int rank = 0; rank < lane.ranks(); ++rank)
    lane.sources[rank] = rank == lane.rank() ? own.source : lane.pair_slot(rank, lane.rank(), slice);
  const size_t count = own.bytes / size_of(task.call.signature.dtype);
  task.reduce(own.result, lane.sources.data(), lane.ranks(), count, lane.scalars.data());
}

}  // namespace

// A slot is free when its turn comes again: whoever has published slice k - 1 has reduced slice k - 2 out of every slot before.
Phase ring_reduce_scatter([[maybe_unused]] FrameMemory& frame, Lane& lane, Task task) {
  lane.enter(task.call, task.number, nullptr, 0);
  for (int i = 1; i < lane.ranks(); ++i) {
    co_await lane.entered(lane.peer(i));
    if (!lane.agrees(lane.peer(i))) co_return Outcome{lane.rank_of(lane.peer(i))};
  }
  read_scalars(lane, task.call.signature);
  const Slices slices{task.call.signature.bytes(), lane.shape().pair_slot_bytes()};
  const uint64_t first = lane.slices();
  for (uint64_t k = 0; k < slices.count(); ++k) {
    const uint64_t slice = first + k;
    const size_t length = slices.length(k);
    const std::byte* send = static_cast<const std::byte*>(task.call.send) + slices.offset(k);
    for (int i = 1; i < lane.ranks(); ++i) {
      const int peer = lane.peer(i);
      copy_bytes(lane.pair_slot(lane.rank(), peer, slice), send + peer * slices.total, length);
    }
    lane.my_board().published.publish(slice + 1);
    for (int i = 1; i < lane.ranks(); ++i) co_await lane.published(lane.peer(i), slice + 1);
    std::byte* recv = static_cast<std::byte*>(task.call.recv) + slices.offset(k);
    reduce_slice(lane, task, slice, {send + lane.rank() * slices.total, recv, length});
  }
  lane.count_slices(slices.count());
  co_return Outcome{};
}

// Slice by slice: reduce this rank's block as above into a gather slot, then take the peers' results out of theirs.
Phase ring_all_reduce([[maybe_unused]] FrameMemory& frame, Lane& lane, Task task) {
  lane.enter(task.call, task.number, nullptr, 0);
  for (int i = 1; i < lane.ranks(); ++i) {
    co_await lane.entered(lane.peer(i));
    if (!lane.agrees(lane.peer(i))) co_return Outcome{lane.rank_of(lane.peer(i))};
  }
  const Signature& signature = task.call.signature;
  read_scalars(lane, signature);
  const Shards shards{signature.count, size_of(signature.dtype), lane.ranks()};
  const size_t piece = lane.shape().pair_slot_bytes();
  const uint64_t first = lane.slices();
  const uint64_t total = Slices{shards.bytes_each(), piece}.count();
  const bool takes_result = signature.root < 0 || signature.root == lane.rank();
  const auto slices_of = [&](int rank) { return Slices{shards.bytes(rank), piece}; };
  for (uint64_t k = 0; k < total; ++k) {
    const uint64_t slice = first + k;
    const std::byte* send = static_cast<const std::byte*>(task.call.send) + k * piece;
    for (int i = 1; i < lane.ranks(); ++i) {
      const int peer = lane.peer(i);
      copy_bytes(lane.pair_slot(lane.rank(), peer, slice), send + shards.offset(peer), slices_of(peer).length(k));
    }
    lane.my_board().published.publish(slice + 1);
    for (int i = 1; i < lane.ranks(); ++i) co_await lane.published(lane.peer(i), slice + 1);
    std::byte* result = lane.gather_slot(lane.rank(), slice);
    const size_t length = slices_of(lane.rank()).length(k);
    reduce_slice(lane, task, slice, {send + shards.offset(lane.rank()), result, length});
    lane.my_board().results_published.publish(slice + 1);
    if (!takes_result) continue;
    std::byte* recv = static_cast<std::byte*>(task.call.recv) + k * piece;
    copy_bytes(recv + shards.offset(lane.rank()), result, length);
    for (int i = 1; i < lane.ranks(); ++i) {
      const int peer = lane.peer(i);
      co_await lane.results_published(peer, slice + 1);
      copy_bytes(recv + shards.offset(peer), lane.gather_slot(peer, slice), slices_of(peer).length(k));
    }
  }
  lane.count_slices(total);
  co_return Outcome{};
}

}  // namespace fccl
