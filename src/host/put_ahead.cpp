// Derives the route before the peers' offers are known, and puts the slice that the route's phase would put first.
#include "host/put_ahead.h"

#include "host/lane.h"
#include "host/offer.h"
#include "host/put_slices.h"
#include "host/shards.h"
#include "kernels/copy.h"

namespace fccl::core {
namespace {

// Returns the route if the peers offer all that could make it another than the ring. An input in no arena is never mapped.
Route route_at_best(const Lane& lane, const Call& call) {
  const Offers best{.all_read = true, .all_in_place = true};
  return route_of({call, lane.shape(), lane.reach.attaching, best, lane.box_bytes(), true, lane.reach.long_slices});
}

SlicedInput input_by(const Route& route, const Call& call, int ranks) {
  const Signature& signature = call.signature;
  const bool shards = route.variant == Variant::shards;
  return {static_cast<const std::byte*>(call.send), shards ? shards_of(signature, signature.dtype, ranks) : call.input(ranks),
          route.piece};
}

}  // namespace

void put_ahead(Lane& lane, const Call& call, const Offer& offer) {
  const Collective& row = call.signature.row();
  if (call.uneven != nullptr || offer.input != kNotInArena || !(row.gathers_on_all() || row.reduces)) return;
  const Route route = route_at_best(lane, call);
  if (route.path != Path::ring) return;
  const SlicedInput input = input_by(route, call, lane.ranks());
  const bool in_pairs = row.reduces && route.variant != Variant::of_two;
  const SlotRing ring = in_pairs ? lane.slots.pair_ring(input.longest_slice()) : lane.slots.gather_ring(input.longest_slice());
  const size_t before = in_pairs ? lane.last_strides().pair : lane.last_strides().gather;
  if (before != ring.stride && before != 0) return;
  const uint64_t slice = lane.slices();
  if (in_pairs)
    put_for_peers(lane, input, ring, slice, 0);
  else
    put_for_all(lane, ring, slice, input.at(lane.rank(), 0), input.length(lane.rank(), 0));
}

}  // namespace fccl::core
