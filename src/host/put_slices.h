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

// Returns true if a peer takes what the rank gives.
inline bool gives_to_peers(const Signature& signature, int rank) {
  const Collective& row = signature.row();
  return row.gives(rank, signature.root) && (row.takers == Who::all || rank != signature.root);
}

// Returns true if the rank puts slices on a route by the ring. The shards of a Reduce go to all ranks.
inline bool puts_slices(const Lane& lane, const Signature& signature) {
  const Collective& row = signature.row();
  return (row.reduces && row.takers == Who::root && lane.ranks() > 2) || gives_to_peers(signature, lane.rank());
}

// Returns true if ranks put the slices of their inputs into the slots of pairs.
inline bool puts_in_pairs(const Route& route, const Collective& row) {
  return row.needs_pair_slots() && route.variant != Variant::of_two;
}

// Takes the memory of the slots in which the rank writes on a route by the ring. Init's own calls leave it alone, since many
// communicators never make a long call.
inline void take_slots(Lane& lane, const Route& route, const Signature& signature) {
  if (signature.issuer != Issuer::user || !puts_slices(lane, signature)) return;
  const bool in_pairs = puts_in_pairs(route, signature.row());
  if (in_pairs) lane.slots.take_memory(lane.rank(), true);
  if (!in_pairs || route.variant == Variant::shards) lane.slots.take_memory(lane.rank(), false);
}

// Ends a Broadcast, Gather, Scatter, or Reduce of two ranks, in which some ranks take no slices of others. The rank says that
// it reads none of the call's slices from here on.
inline void end_rooted(Lane& lane, uint64_t slices, const SlotRing& ring) {
  lane.my_board().drained.publish(lane.slices() + slices);
  lane.count_slices(slices, {.gather = ring.stride, .told = true});
}

}  // namespace fccl::core
