// Pair slots: copies a slice of each peer's block into the slot for that peer.
#pragma once

#include "host/lane.h"
#include "host/slices.h"
#include "kernels/copy.h"

namespace fccl::core {

// Puts slice k of the call, which is the lane's slice `slice`, into the slot of each pair. The slots are free by then: a rank
// publishes slice k - 1 only after it has taken slice k - 2 out of every slot.
inline void put_for_peers(Lane& lane, const SlicedInput& input, const SlotRing& ring, uint64_t slice, uint64_t k) {
  for (int i = 1; i < lane.ranks(); ++i) {
    const int peer = lane.peer(i);
    lane.slots.put(lane.slots.pair_slot(lane.rank(), peer, ring, slice), input.at(peer, k), input.length(peer, k));
  }
}

}  // namespace fccl::core
