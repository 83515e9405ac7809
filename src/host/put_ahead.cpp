// Derives the route before the peers' offers are known, and puts the slice that the route's phase would put first.
#include "host/put_ahead.h"

#include "host/lane.h"
#include "host/offer.h"
#include "host/put_slices.h"
#include "host/shards.h"
#include "kernels/copy.h"

namespace fccl::core {
namespace {

// Returns the route if the peers offer all that could make it another than the ring. An input in no arena is never mapped; one
// in an arena still goes by the ring if peers map it, where it is short and in place.
Route route_at_best(const Lane& lane, const Call& call, const Offer& offer) {
  const bool in_place = offer.in_place;
  const Offers mapped{
      .all_read = true, .all_in_place = in_place, .any_in_place = in_place, .mapped = true, .outputs_mapped = true};
  const Route best = route_past_mailbox(lane, call, {.all_read = true, .all_in_place = true});
  return offer.input == kNotInArena || best.path != Path::ring ? best : route_past_mailbox(lane, call, mapped);
}

SlicedInput input_by(const Route& route, const Call& call, int ranks) {
  const Signature& signature = call.signature;
  const bool shards = route.variant == Variant::shards;
  return {static_cast<const std::byte*>(call.send), shards ? shards_of(signature, signature.dtype, ranks) : call.input(ranks),
          route.piece};
}

// Returns true if peers have taken all but the last slice that this rank has put into the ring, and slices keep their distance.
bool is_free(const Lane& lane, const SlotRing& ring, bool in_pairs) {
  const Strides& last = lane.last_strides();
  const size_t before = in_pairs ? last.pair : last.gather;
  if (before != ring.stride && before != 0) return false;
  for (int i = 1; last.told && !in_pairs && i < lane.ranks(); ++i)
    if (!lane.drained(lane.peer(i), lane.slices() - 1).reached()) return false;
  return true;
}

}  // namespace

void put_ahead(Lane& lane, const Call& call, const Offer& offer) {
  const Collective& row = call.signature.row();
  if (call.uneven != nullptr || !puts_slices(lane, call.signature)) return;
  const Route route = route_at_best(lane, call, offer);
  if (route.path != Path::ring) return;
  const SlicedInput input = input_by(route, call, lane.ranks());
  const bool in_pairs = puts_in_pairs(route, row);
  const SlotRing ring = in_pairs ? lane.slots.pair_ring(input.longest_slice()) : lane.slots.gather_ring(input.longest_slice());
  if (!is_free(lane, ring, in_pairs)) return;
  take_slots(lane, route, call.signature);
  const uint64_t slice = lane.slices();
  const int block = row.givers == Who::root ? lane.peer(1) : lane.rank();  // a Scatter begins with that rank's
  if (in_pairs)
    put_for_peers(lane, input, ring, slice, 0);
  else
    put_for_all(lane, ring, slice, input.at(block, 0), input.length(block, 0));
}

}  // namespace fccl::core
