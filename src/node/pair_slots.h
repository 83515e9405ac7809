// Pair slots: how a slice of each peer's block gets on its way to that peer.
#pragma once

#include "kernels/copy.h"
#include "node/lane.h"
#include "node/slices.h"

namespace fccl {

// Slice k of the call, which is the lane's slice `slice`: what is for a peer goes into the slot of that pair. The slots are
// free when their turn comes again: whoever has published slice k - 1 has taken slice k - 2 out of every slot before.
inline void put_for_peers(Lane& lane, const SlicedInput& input, const SlotRing& ring, uint64_t slice, uint64_t k) {
  for (int i = 1; i < lane.ranks(); ++i) {
    const int peer = lane.peer(i);
    copy_bytes(lane.pair_slot(lane.rank(), peer, ring, slice), input.at(peer, k), input.length(peer, k));
  }
}

}  // namespace fccl
