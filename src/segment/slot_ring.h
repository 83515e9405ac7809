// SlotRing: the places of slices in the slots of the shared memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace fccl::core {

// The positions of a call's slices in the slots of a source: one after the other, packed closer if slices are shorter than a
// slot.
struct SlotRing {
  size_t stride;
  size_t places;

  SlotRing(size_t ring_bytes, size_t longest_slice)
      : stride(std::max<size_t>((longest_slice + 63) / 64 * 64, 64)), places(ring_bytes / stride) {}
  size_t offset(uint64_t slice) const { return slice % places * stride; }
};

// The positions of slices of any length between two ranks, which both compute alike. Two successive slices never overlap in a
// ring of three slots or more.
class SliceCursor {
 public:
  size_t offset(size_t ring_bytes, size_t size) const { return next_ + size <= ring_bytes ? next_ : 0; }
  void pass(size_t ring_bytes, size_t size) { next_ = offset(ring_bytes, size) + (size + 63) / 64 * 64; }

 private:
  size_t next_ = 0;
};

}  // namespace fccl::core
