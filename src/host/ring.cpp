// The ring, for collectives that only move bytes: a source puts slice after slice into its slots, and its readers take them
// out.
#include "host/lane.h"
#include "host/offer.h"
#include "host/phases.h"
#include "host/put_slices.h"
#include "host/slices.h"
#include "host/task.h"
#include "kernels/copy.h"

namespace fccl::core {

// A slot is free by its next turn: a rank publishes slice k - 1 only after it has taken slice k - 2 out of every slot.
Phase ring_all_gather([[maybe_unused]] FrameMemory& frame, Lane& lane, Route route, Task task) {
  const SlicedInput input = input_of(task.call, lane.ranks(), route.piece);
  const SlicedOutput output = output_of(task.call, lane.ranks(), route.piece);
  const SlotRing ring = lane.slots.gather_ring(output.longest_slice());
  const uint64_t first = lane.slices();
  const CopyBytes take = copy_of(route);
  for (uint64_t k = 0; k < output.count(); ++k) {
    const uint64_t slice = first + k;
    const std::byte* send = input.at(lane.rank(), k);
    std::byte* own = output.at(lane.rank(), k);
    const size_t length = output.length(lane.rank(), k);
    if (!lane.has_published(slice)) put_for_all(lane, ring, slice, send, length);
    take(own, send, length);
    for (int i = 1; i < lane.ranks(); ++i) {
      const int peer = lane.peer(i);
      co_await lane.published(peer, slice + 1);
      take(output.at(peer, k), lane.slots.gather_slot(peer, ring, slice), output.length(peer, k));
    }
  }
  lane.count_slices(output.count(), {.gather = ring.stride});
  co_return Done{};
}

Phase ring_broadcast([[maybe_unused]] FrameMemory& frame, Lane& lane, Route route, Task task) {
  const SlicedInput input = input_of(task.call, lane.ranks(), route.piece);
  const SlicedOutput output = output_of(task.call, lane.ranks(), route.piece);
  const int root = task.call.signature.root;
  const SlotRing ring = lane.slots.gather_ring(output.longest_slice());
  const uint64_t first = lane.slices();
  for (uint64_t k = 0; k < output.count(); ++k) {
    const uint64_t slice = first + k;
    std::byte* recv = output.at(root, k);
    const size_t length = output.length(root, k);
    if (lane.rank() == root) {
      const std::byte* send = input.at(root, k);
      for (int i = 1; k >= 2 && i < lane.ranks(); ++i) co_await lane.drained(lane.peer(i), slice - 1);
      if (!lane.has_published(slice)) put_for_all(lane, ring, slice, send, length);
      copy_bytes(recv, send, length);
    } else {
      co_await lane.published(root, slice + 1);
      copy_bytes(recv, lane.slots.gather_slot(root, ring, slice), length);
      lane.my_board().drained.publish(slice + 1);
    }
  }
  end_rooted(lane, output.count(), ring);
  co_return Done{};
}

Phase ring_gather([[maybe_unused]] FrameMemory& frame, Lane& lane, Route route, Task task) {
  const SlicedInput input = input_of(task.call, lane.ranks(), route.piece);
  const SlicedOutput output = output_of(task.call, lane.ranks(), route.piece);
  const int root = task.call.signature.root;
  const SlotRing ring = lane.slots.gather_ring(output.longest_slice());
  const uint64_t first = lane.slices();
  for (uint64_t k = 0; k < output.count(); ++k) {
    const uint64_t slice = first + k;
    const std::byte* send = input.at(lane.rank(), k);
    if (lane.rank() == root) {
      copy_bytes(output.at(root, k), send, output.length(root, k));
      for (int i = 1; i < lane.ranks(); ++i) {
        const int peer = lane.peer(i);
        co_await lane.published(peer, slice + 1);
        copy_bytes(output.at(peer, k), lane.slots.gather_slot(peer, ring, slice), output.length(peer, k));
      }
      lane.my_board().drained.publish(slice + 1);
    } else {
      if (k >= 2) co_await lane.drained(root, slice - 1);
      if (!lane.has_published(slice)) put_for_all(lane, ring, slice, send, input.length(lane.rank(), k));
    }
  }
  end_rooted(lane, output.count(), ring);
  co_return Done{};
}

// The root serves its peers one after the other through its slots. A slot is free once its last reader has drained it.
Phase ring_scatter([[maybe_unused]] FrameMemory& frame, Lane& lane, Route route, Task task) {
  const SlicedInput input = input_of(task.call, lane.ranks(), route.piece);
  const SlicedOutput output = output_of(task.call, lane.ranks(), route.piece);
  const int root = task.call.signature.root;
  const SlotRing ring = lane.slots.gather_ring(output.longest_slice());
  const uint64_t first = lane.slices();
  const uint64_t each = input.count();
  const uint64_t total = each * (lane.ranks() - 1);
  for (uint64_t t = 0; t < total; ++t) {
    const auto reader_of = [&](uint64_t turn) { return (root + 1 + static_cast<int>(turn / each)) % lane.ranks(); };
    const uint64_t slice = first + t;
    const uint64_t k = t % each;
    if (lane.rank() == root) {
      if (t >= 2) co_await lane.drained(reader_of(t - 2), slice - 1);
      const int reader = reader_of(t);
      if (!lane.has_published(slice)) put_for_all(lane, ring, slice, input.at(reader, k), input.length(reader, k));
    } else if (lane.rank() == reader_of(t)) {
      co_await lane.published(root, slice + 1);
      copy_bytes(output.at(root, k), lane.slots.gather_slot(root, ring, slice), output.length(root, k));
      lane.my_board().drained.publish(slice + 1);
    }
  }
  if (lane.rank() == root) copy_bytes(task.call.recv, input.at(root, 0), input.layout.bytes(root));
  end_rooted(lane, total, ring);
  co_return Done{};
}

}  // namespace fccl::core
