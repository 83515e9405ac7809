// LaneSlots: finds the slots in which the ranks of a host put the slices of a lane's calls, and their long payloads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/copy.h"
#include "os/memory.h"
#include "segment/segment.h"
#include "segment/slot_ring.h"

namespace fccl::core {

// The distances between the slices of a call in the rings of a lane; 0 in a ring that the call did not use.
struct Strides {
  // A rank may have ended its call while peers still read more than its last slice.
  static constexpr size_t kSeveralUnread = 1;

  size_t gather = 0;
  size_t pair = 0;
  // Set if a rank may have ended its call while peers still read more than its last slice of the gather ring. `drained` then
  // tells what each of them has taken.
  bool told = false;
};

// A lane owns it; the segment outlives it. Any thread may call. Ranks are numbered within the host.
class LaneSlots {
 public:
  LaneSlots(const Segment& segment, LaneId id) : segment_(&segment), id_(id) {}

  // How a rank writes its slots, long payloads, and results that peers read from its arena. Where the host's processors are far
  // from each other, it writes past the caches: its peers then find the bytes in memory, and need not fetch each line from the
  // cache of a far processor. Set in init.
  CopyBytes put = copy_bytes;

  // Takes the memory of all slots in which `source` writes, those for all or those of pairs. Done once, by the thread that runs
  // the lane's current phase.
  void take_memory(int source, bool in_pairs) {
    if (std::exchange(in_pairs ? has_pair_memory_ : has_gather_memory_, true)) return;
    const int peers = segment_->shape().ranks - 1;
    if (in_pairs)  // the ring for the next rank is the first
      take_pages(segment_->pair_ring(source, (source + 1) % (peers + 1)), static_cast<size_t>(peers) * pair_ring_bytes());
    else
      take_pages(segment_->gather_ring(source, id_), segment_->shape().gather_ring_bytes());
  }

  // Returns the size of a source's slots for one peer.
  size_t pair_ring_bytes() const { return segment_->shape().pair_ring_bytes(); }
  // Return the rings of slots for a call, whose longest slice has `longest_slice` bytes.
  SlotRing gather_ring(size_t longest_slice) const { return {segment_->shape().gather_ring_bytes(), longest_slice}; }
  SlotRing pair_ring(size_t longest_slice) const { return {segment_->shape().pair_ring_bytes(), longest_slice}; }
  std::byte* gather_slot(int source, const SlotRing& ring, uint64_t slice) const {
    return segment_->gather_ring(source, id_) + ring.offset(slice);
  }
  std::byte* pair_slot(int source, int destination, const SlotRing& ring, uint64_t slice) const {
    return segment_->pair_ring(source, destination) + ring.offset(slice);
  }
  std::byte* long_payload(int source, int parity) const { return segment_->long_payload(source, id_, parity); }
  // Return the slot of a slice in a ring for slices of the maximum length.
  std::byte* gather_slot(int source, uint64_t slice) const {
    return gather_slot(source, gather_ring(segment_->shape().slot_bytes), slice);
  }
  std::byte* pair_slot(int source, int destination, uint64_t slice) const {
    return pair_slot(source, destination, pair_ring(segment_->shape().pair_slot_bytes()), slice);
  }

 private:
  const Segment* segment_;
  LaneId id_;
  bool has_gather_memory_ = false, has_pair_memory_ = false;
};

}  // namespace fccl::core
