// Chooses a route: the mailbox, else arenas, else attach, else the ring.
#include "host/route.h"

#include "base/call.h"
#include "segment/segment.h"

namespace fccl::core {
namespace {

// True for AllReduce and Reduce, whose ranks divide one vector among them.
bool divides_vector(const Collective& row) { return row.reduces && row.input == Extent::one_block; }

bool has_long_result(const Facts& facts) { return facts.call.output(facts.shape.ranks).total() >= facts.tuning.streamed; }

// Where ranks wait long for each other, two slices fill a ring, so that they wait less often. The counts of AlltoAllV lie in
// slots of the usual length.
Route ring_of(const Facts& facts, Reason reason) {
  const Collective& row = facts.call.signature.row();
  const SegmentShape& shape = facts.shape;
  const size_t slots = facts.long_slices && !row.has_private_counts() ? kSlots / 2 : 1;
  Route route{.path = Path::ring, .reason = reason, .piece = slots * shape.slot_bytes};
  if (divides_vector(row)) {
    route.variant = shape.ranks == 2 ? Variant::of_two : Variant::shards;
    // If results are wider than inputs, slices are shorter, so that the results fit.
    if (route.variant == Variant::shards) route.piece = slots * shape.pair_slot_bytes() / facts.call.signature.widening();
    return route;
  }
  if (row.reduces || row.has_pairs()) route.piece = slots * shape.pair_slot_bytes();
  route.streams = (row.gathers_on_all() || row.has_pairs()) && has_long_result(facts);
  return route;
}

// Every rank reduces a shard, and takes its peers' results from outputs or slots.
Route mapped_shards_of(const Facts& facts, Reason reason) {
  const Signature& signature = facts.call.signature;
  const bool to_outputs =
      signature.row().takers == Who::all && signature.result_bytes() >= facts.tuning.in_outputs && facts.offers.outputs_mapped;
  return {.path = Path::mapped,
          .variant = Variant::shards,
          .reason = reason,
          .to_outputs = to_outputs,
          .piece = to_outputs ? facts.tuning.reduced_piece : facts.shape.slot_bytes / signature.widening()};
}

// Chooses for an AllReduce whose inputs lie in arenas. If every rank reduces the whole vector, no rank waits for results. An
// in-place rank cannot do so, as it would overwrite data that its peers still read.
Route mapped_all_reduce_of(const Facts& facts) {
  const Signature& signature = facts.call.signature;
  const int ranks = facts.shape.ranks;
  const bool in_place = facts.offers.any_in_place;
  if (ranks == 2 && in_place && signature.result_bytes() < facts.tuning.in_slots) return ring_of(facts, Reason::short_in_place);
  if (in_place) return mapped_shards_of(facts, Reason::in_place);
  if (signature.bytes() * static_cast<size_t>(ranks - 1) > facts.tuning.read_whole)
    return mapped_shards_of(facts, Reason::long_vector);
  return {.path = Path::mapped, .variant = Variant::whole, .reason = Reason::short_vector, .piece = facts.tuning.reduced_piece};
}

Route mapped_of(const Facts& facts) {
  const Collective& row = facts.call.signature.row();
  if (divides_vector(row))
    return row.takers == Who::all ? mapped_all_reduce_of(facts) : mapped_shards_of(facts, Reason::in_arenas);
  return {.path = Path::mapped,
          .reason = Reason::in_arenas,
          .streams = !row.reduces && has_long_result(facts),
          .piece = row.reduces ? facts.tuning.reduced_piece : facts.tuning.moved_piece};
}

// Attach reads blocks of which a rank can compute the place in its peers' inputs.
Route unmapped_of(const Facts& facts) {
  const Collective& row = facts.call.signature.row();
  if (!facts.attaching.is_open || !facts.offers.all_read || !row.takes_known_blocks())
    return ring_of(facts, Reason::private_memory);
  const Layout output = facts.call.output(facts.shape.ranks);
  if (output.most() < facts.attaching.least_block) return ring_of(facts, Reason::short_block);
  const size_t past_caches = row.has_pairs() ? facts.tuning.exchanged_past_caches : facts.tuning.past_caches;
  if (!facts.offers.all_in_place && output.total() >= past_caches && !facts.attaching.past_caches)
    return ring_of(facts, Reason::past_caches);
  return {.path = Path::attach, .reason = Reason::long_block, .piece = facts.tuning.moved_piece};
}

}  // namespace

Route route_of(const Facts& facts) {
  if (!facts.past_mailbox)
    if (const auto route = route_without_offers(facts.call, facts.shape.ranks, facts.box_bytes)) return *route;
  return facts.offers.mapped ? mapped_of(facts) : unmapped_of(facts);
}

std::optional<Route> route_without_offers(const Call& call, int ranks, size_t box_bytes) {
  if (ranks == 1) return Route{.path = Path::alone, .reason = Reason::one_rank};
  // A rank does not know the other ranks' counts here.
  if (call.signature.row().has_private_counts()) return Route{.path = Path::mailbox, .reason = Reason::private_counts};
  if (mailbox_bytes(call, ranks) > box_bytes) return {};
  return Route{.path = Path::mailbox, .reason = Reason::fits_box};
}

bool waited_long(const Route& route, int ranks, uint64_t slices, double seconds, const Tuning& tuning) {
  const double copied = static_cast<double>(route.piece) * ranks * ranks;
  return route.path == Path::ring &&
         seconds > static_cast<double>(slices) * (tuning.long_wait + copied / tuning.copied_a_second);
}

size_t mailbox_bytes(const Call& call, int ranks) {
  const Collective& row = call.signature.row();
  return row.is_uneven() && !row.reduces ? call.output(ranks).most() : call.input(ranks).total();
}

}  // namespace fccl::core
