// The ring for collectives that only move bytes: a source puts a slice into one of its two slots, its readers take it out.
#include "kernels/copy.h"
#include "node/phases.h"
#include "node/slices.h"

namespace fccl {
namespace {

const std::byte* bytes_of(const void* buffer) { return static_cast<const std::byte*>(buffer); }
std::byte* bytes_of(void* buffer) { return static_cast<std::byte*>(buffer); }

}  // namespace

// A slot is free when its turn comes again: whoever has published slice k - 1 has taken slice k - 2 out of every slot before.
Phase ring_all_gather([[maybe_unused]] FrameMemory& frame, Lane& lane, Task task) {
  lane.enter(task.call, task.number, nullptr, 0);
  for (int i = 1; i < lane.ranks(); ++i) {
    co_await lane.entered(lane.peer(i));
    if (!lane.agrees(lane.peer(i))) co_return Outcome{lane.rank_of(lane.peer(i))};
  }
  const Slices slices{task.call.signature.bytes(), lane.shape().slot_bytes};
  const uint64_t first = lane.slices();
  const std::byte* send = bytes_of(task.call.send);
  std::byte* recv = bytes_of(task.call.recv);
  const bool streams = lane.ranks() * slices.total >= kStreamedBytes;
  const auto take = streams ? stream_bytes : copy_bytes;
  for (uint64_t k = 0; k < slices.count(); ++k) {
    const uint64_t slice = first + k;
    const size_t offset = slices.offset(k);
    const size_t length = slices.length(k);
    std::byte* own = recv + lane.rank() * slices.total + offset;
    if (streams) {
      stream_bytes_and_copy(own, lane.gather_slot(lane.rank(), slice), send + offset, length);
      lane.my_board().published.publish(slice + 1);
    } else {
      copy_bytes(lane.gather_slot(lane.rank(), slice), send + offset, length);
      lane.my_board().published.publish(slice + 1);
      copy_bytes(own, send + offset, length);
    }
    for (int i = 1; i < lane.ranks(); ++i) {
      const int peer = lane.peer(i);
      co_await lane.published(peer, slice + 1);
      take(recv + peer * slices.total + offset, lane.gather_slot(peer, slice), length);
    }
  }
  lane.count_slices(slices.count());
  co_return Outcome{};
}

Phase ring_broadcast([[maybe_unused]] FrameMemory& frame, Lane& lane, Task task) {
  lane.enter(task.call, task.number, nullptr, 0);
  for (int i = 1; i < lane.ranks(); ++i) {
    co_await lane.entered(lane.peer(i));
    if (!lane.agrees(lane.peer(i))) co_return Outcome{lane.rank_of(lane.peer(i))};
  }
  const Slices slices{task.call.signature.bytes(), lane.shape().slot_bytes};
  const int root = task.call.signature.root;
  const uint64_t first = lane.slices();
  for (uint64_t k = 0; k < slices.count(); ++k) {
    const uint64_t slice = first + k;
    std::byte* recv = bytes_of(task.call.recv) + slices.offset(k);
    if (lane.rank() == root) {
      const std::byte* send = bytes_of(task.call.send) + slices.offset(k);
      for (int i = 1; k >= 2 && i < lane.ranks(); ++i) co_await lane.drained(lane.peer(i), slice - 1);
      copy_bytes(lane.gather_slot(root, slice), send, slices.length(k));
      lane.my_board().published.publish(slice + 1);
      copy_bytes(recv, send, slices.length(k));
    } else {
      co_await lane.published(root, slice + 1);
      copy_bytes(recv, lane.gather_slot(root, slice), slices.length(k));
      lane.my_board().drained.publish(slice + 1);
    }
  }
  lane.count_slices(slices.count());
  co_return Outcome{};
}

Phase ring_gather([[maybe_unused]] FrameMemory& frame, Lane& lane, Task task) {
  lane.enter(task.call, task.number, nullptr, 0);
  for (int i = 1; i < lane.ranks(); ++i) {
    co_await lane.entered(lane.peer(i));
    if (!lane.agrees(lane.peer(i))) co_return Outcome{lane.rank_of(lane.peer(i))};
  }
  const Slices slices{task.call.signature.bytes(), lane.shape().slot_bytes};
  const int root = task.call.signature.root;
  const uint64_t first = lane.slices();
  for (uint64_t k = 0; k < slices.count(); ++k) {
    const uint64_t slice = first + k;
    const std::byte* send = bytes_of(task.call.send) + slices.offset(k);
    if (lane.rank() == root) {
      std::byte* recv = bytes_of(task.call.recv) + slices.offset(k);
      copy_bytes(recv + root * slices.total, send, slices.length(k));
      for (int i = 1; i < lane.ranks(); ++i) {
        const int peer = lane.peer(i);
        co_await lane.published(peer, slice + 1);
        copy_bytes(recv + peer * slices.total, lane.gather_slot(peer, slice), slices.length(k));
      }
      lane.my_board().drained.publish(slice + 1);
    } else {
      if (k >= 2) co_await lane.drained(root, slice - 1);
      copy_bytes(lane.gather_slot(lane.rank(), slice), send, slices.length(k));
      lane.my_board().published.publish(slice + 1);
    }
  }
  lane.count_slices(slices.count());
  co_return Outcome{};
}

// The root serves its peers one after the other through its two slots; a slot is free when its last reader has drained it.
Phase ring_scatter([[maybe_unused]] FrameMemory& frame, Lane& lane, Task task) {
  lane.enter(task.call, task.number, nullptr, 0);
  for (int i = 1; i < lane.ranks(); ++i) {
    co_await lane.entered(lane.peer(i));
    if (!lane.agrees(lane.peer(i))) co_return Outcome{lane.rank_of(lane.peer(i))};
  }
  const Slices slices{task.call.signature.bytes(), lane.shape().slot_bytes};
  const int root = task.call.signature.root;
  const uint64_t first = lane.slices();
  const uint64_t total = slices.count() * (lane.ranks() - 1);
  if (lane.rank() == root) copy_bytes(task.call.recv, bytes_of(task.call.send) + root * slices.total, slices.total);
  for (uint64_t t = 0; t < total; ++t) {
    const auto reader_of = [&](uint64_t turn) { return (root + 1 + static_cast<int>(turn / slices.count())) % lane.ranks(); };
    const uint64_t slice = first + t;
    const uint64_t k = t % slices.count();
    if (lane.rank() == root) {
      if (t >= 2) co_await lane.drained(reader_of(t - 2), slice - 1);
      const std::byte* send = bytes_of(task.call.send) + reader_of(t) * slices.total;
      copy_bytes(lane.gather_slot(root, slice), send + slices.offset(k), slices.length(k));
      lane.my_board().published.publish(slice + 1);
    } else if (lane.rank() == reader_of(t)) {
      co_await lane.published(root, slice + 1);
      copy_bytes(bytes_of(task.call.recv) + slices.offset(k), lane.gather_slot(root, slice), slices.length(k));
      lane.my_board().drained.publish(slice + 1);
    }
  }
  lane.count_slices(total);
  co_return Outcome{};
}

}  // namespace fccl
