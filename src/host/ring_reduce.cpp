// The ring, for collectives that reduce: a rank puts its part of each peer's block into a slot of that pair, and each rank
// reduces its own block directly from the slots.
#include "host/offer.h"
#include "host/phases.h"
#include "host/put_slices.h"
#include "host/shards.h"
#include "host/task.h"
#include "kernels/copy.h"

namespace fccl::core {
namespace {

// One slice of this rank's block: its own part, and the place of the result.
struct OwnSlice {
  const std::byte* source;
  std::byte* result;
  size_t bytes;
};

// Reduces the slice with the peers' parts, which lie in their slots.
void reduce_slice(Lane& lane, const Task& task, const SlotRing& ring, uint64_t slice, const OwnSlice& own) {
  for (int rank = 0; rank < lane.ranks(); ++rank)
    lane.sources[rank] = rank == lane.rank() ? own.source : lane.slots.pair_slot(rank, lane.rank(), ring, slice);
  const size_t count = own.bytes / size_of(task.call.signature.dtype);
  task.reduce(own.result, lane.sources.data(), lane.ranks(), count, lane.scalars.data());
}

}  // namespace

Phase ring_reduce_scatter([[maybe_unused]] FrameMemory& frame, Lane& lane, Route route, Task task) {
  read_scalars(lane, task.call.signature);
  const SlicedInput input = input_of(task.call, lane.ranks(), route.piece);
  const size_t result_piece = route.piece * task.call.signature.widening();
  const SlicedOutput output = output_of(task.call, lane.ranks(), result_piece);
  const SlotRing ring = lane.slots.pair_ring(input.longest_slice());
  const uint64_t first = lane.slices();
  for (uint64_t k = 0; k < input.count(); ++k) {
    const uint64_t slice = first + k;
    if (!lane.has_published(slice)) put_for_peers(lane, input, ring, slice, k);
    for (int i = 1; i < lane.ranks(); ++i) co_await lane.published(lane.peer(i), slice + 1);
    const int me = lane.rank();
    reduce_slice(lane, task, ring, slice, {input.at(me, k), output.at(me, k), input.length(me, k)});
  }
  lane.count_slices(input.count(), {.pair = ring.stride});
  co_return Done{};
}

namespace {

// Reduces a slice of two ranks' vectors, one of which lies in the peer's slot.
void reduce_with_peer(Lane& lane, const Task& task, const SlotRing& ring, uint64_t slice, const OwnSlice& own) {
  lane.sources[lane.rank()] = own.source;
  lane.sources[lane.peer(1)] = lane.slots.gather_slot(lane.peer(1), ring, slice);
  const size_t count = own.bytes / size_of(task.call.signature.dtype);
  task.reduce(own.result, lane.sources.data(), lane.ranks(), count, lane.scalars.data());
}

// Runs AllReduce between two ranks. Each puts its whole vector into its slots and reduces all of it, so it waits for the other
// rank only once per slice. The bytes between the cores are as many as if each reduced a half and passed on the result.
Phase all_reduce_of_two([[maybe_unused]] FrameMemory& frame, Lane& lane, Route route, Task task) {
  const int me = lane.rank(), peer = lane.peer(1);
  read_scalars(lane, task.call.signature);
  const SlicedInput input = input_of(task.call, lane.ranks(), route.piece);
  const SlicedOutput output = output_of(task.call, lane.ranks(), route.piece * task.call.signature.widening());
  const SlotRing ring = lane.slots.gather_ring(input.longest_slice());
  const uint64_t first = lane.slices();
  for (uint64_t k = 0; k < input.count(); ++k) {
    const uint64_t slice = first + k;
    const size_t length = input.length(me, k);
    if (!lane.has_published(slice)) put_for_all(lane, ring, slice, input.at(me, k), length);
    co_await lane.published(peer, slice + 1);
    reduce_with_peer(lane, task, ring, slice, {input.at(me, k), output.at(me, k), length});
  }
  lane.count_slices(input.count(), {.gather = ring.stride});
  co_return Done{};
}

// Runs Reduce between two ranks: the root reduces all of the vector, since the other rank would wait for its half.
Phase reduce_of_two([[maybe_unused]] FrameMemory& frame, Lane& lane, Route route, Task task) {
  const int me = lane.rank(), peer = lane.peer(1);
  read_scalars(lane, task.call.signature);
  const bool is_root = me == task.call.signature.root;
  const SlicedInput input = input_of(task.call, lane.ranks(), route.piece);
  const SlicedOutput output = output_of(task.call, lane.ranks(), route.piece * task.call.signature.widening());
  const SlotRing ring = lane.slots.gather_ring(input.longest_slice());
  const uint64_t first = lane.slices();
  for (uint64_t k = 0; k < input.count(); ++k) {
    const uint64_t slice = first + k;
    if (is_root) {
      co_await lane.published(peer, slice + 1);
      reduce_with_peer(lane, task, ring, slice, {input.at(me, k), output.at(me, k), input.length(me, k)});
      lane.my_board().drained.publish(slice + 1);
    } else {
      if (k >= 2) co_await lane.drained(peer, slice - 1);
      if (!lane.has_published(slice)) put_for_all(lane, ring, slice, input.at(me, k), input.length(me, k));
    }
  }
  end_rooted(lane, input.count(), ring);
  co_return Done{};
}

// For each slice, a rank reduces its block into a gather slot, then takes the peers' results from their gather slots.
Phase all_reduce_of_shards([[maybe_unused]] FrameMemory& frame, Lane& lane, Route route, Task task) {
  const Signature& signature = task.call.signature;
  read_scalars(lane, signature);
  const size_t widening = signature.widening();
  const SlicedInput input{static_cast<const std::byte*>(task.call.send), shards_of(signature, signature.dtype, lane.ranks()),
                          route.piece};
  const SlicedOutput output{static_cast<std::byte*>(task.call.recv),
                            shards_of(signature, signature.result_type(), lane.ranks()), input.piece * widening};
  const SlotRing ring = lane.slots.pair_ring(input.longest_slice()), results = lane.slots.gather_ring(output.longest_slice());
  const uint64_t first = lane.slices();
  const bool takes_result = signature.root < 0 || signature.root == lane.rank();
  for (uint64_t k = 0; k < input.count(); ++k) {
    const uint64_t slice = first + k;
    if (!lane.has_published(slice)) put_for_peers(lane, input, ring, slice, k);
    for (int i = 1; i < lane.ranks(); ++i) co_await lane.published(lane.peer(i), slice + 1);
    std::byte* result = lane.slots.gather_slot(lane.rank(), results, slice);
    const size_t length = input.length(lane.rank(), k);
    reduce_slice(lane, task, ring, slice, {input.at(lane.rank(), k), result, length});
    lane.my_board().results_published.publish(slice + 1);
    if (!takes_result) continue;
    copy_bytes(output.at(lane.rank(), k), result, length * widening);
    for (int i = 1; i < lane.ranks(); ++i) {
      const int peer = lane.peer(i);
      co_await lane.results_published(peer, slice + 1);
      copy_bytes(output.at(peer, k), lane.slots.gather_slot(peer, results, slice), output.length(peer, k));
    }
  }
  lane.count_slices(input.count(), {.gather = results.stride, .pair = ring.stride});
  co_return Done{};
}

}  // namespace

Phase ring_all_reduce(FrameMemory& frame, Lane& lane, Route route, Task task) {
  if (route.variant != Variant::of_two) return all_reduce_of_shards(frame, lane, route, task);
  return task.call.signature.root < 0 ? all_reduce_of_two(frame, lane, route, task) : reduce_of_two(frame, lane, route, task);
}

}  // namespace fccl::core
