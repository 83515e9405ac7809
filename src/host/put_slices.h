// Puts slices into this rank's slots, those for all peers or those of pairs, and publishes them.
#pragma once

#include "host/lane.h"
#include "host/slices.h"
#include "kernels/copy.h"

namespace fccl::core {

// Puts the lane's slice `slice` into the slot that all peers read.
inline void put_for_all(Lane& lane, const SlotRing& ring, uint64_t slice, const std::byte* source, size_t bytes) {
  lane.slots.put(lane.slots.gather_slot(lane.rank(), ring, slice), source, bytes);
  lane.my_board().published.publish(slice + 1);
}

// Puts slice k of the call, which is the lane's slice `slice`, into the slot of each pair. The slots are free by then: a rank
// publishes slice k - 1 only after it has taken slice k - 2 out of every slot.
inline void put_for_peers(Lane& lane, const SlicedInput& input, const SlotRing& ring, uint64_t slice, uint64_t k) {
  for (int i = 1; i < lane.ranks(); ++i) {
    const int peer = lane.peer(i);
    lane.slots.put(lane.slots.pair_slot(lane.rank(), peer, ring, slice), input.at(peer, k), input.length(peer, k));
  }
  lane.my_board().published.publish(slice + 1);
}

}  // namespace fccl::core
