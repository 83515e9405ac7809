// Makes this rank's offer, and derives the route from all ranks' offers.
#include "host/offer.h"

#include <algorithm>
#include <cstring>

#include "host/lane.h"
#include "host/task.h"
#include "segment/mapped_peers.h"
#include "segment/peer_memory.h"

namespace fccl::core {
namespace {

// Returns the end of the last block.
size_t extent_of(const Layout& layout, int ranks) {
  size_t end = 0;
  for (int block = 0; block < ranks; ++block)
    if (layout.bytes(block) != 0) end = std::max(end, layout.offset(block) + layout.bytes(block));
  return end;
}

// Returns how many bytes of a rank's input peers may read. A rank knows only its own counts in AlltoAllV; there its peers check
// each block.
size_t given_by(const Lane& lane, const Call& call, int rank) {
  const Collective& row = call.signature.row();
  if (row.has_private_counts()) return rank == lane.rank() ? extent_of(call.input(lane.ranks()), lane.ranks()) : 0;
  return row.is_uneven() && !row.reduces ? call.output(lane.ranks()).bytes(rank) : call.input(lane.ranks()).total();
}

// Offers the memory that peers may read in place: the input and, for AllReduce, the output.
void offer_arena(Lane& lane, const Call& call, Offer& offer) {
  lane.reach.mapped_peers->publish();
  offer.input = offset_in_arena(call.send, given_by(lane, call, lane.rank()));
  if (call.signature.collective == fcclCollAllReduce) offer.output = offset_in_arena(call.recv, call.signature.result_bytes());
}

bool is_in_place(const Call& call, const Layout& output, int rank) {
  return reinterpret_cast<uintptr_t>(call.send) == reinterpret_cast<uintptr_t>(call.recv) + output.offset(rank);
}

// True if a peer reads the rank's input.
bool is_read(const Signature& signature, int rank) {
  const Collective& row = signature.row();
  return row.gives(rank, signature.root) && (row.reduces || row.takers != Who::root || rank != signature.root);
}

// Notes the addresses of a rank's buffers in this process. Treats a buffer as not offered if it lies outside the peer's arena,
// because the peer's word is not trusted.
void find_buffers(Lane& lane, const Call& call, int rank, const Offer& offer) {
  const bool gives = offer.input != kNotInArena, lends = offer.output != kNotInArena;
  const MappedPeers& peers = *lane.reach.mapped_peers;
  if (rank == lane.rank()) {
    // Uses the offset, as peers do: an empty buffer may be null and still counts as offered.
    lane.reach.inputs[rank] = gives ? own_reservation()->begin + offer.input : nullptr;
    lane.reach.outputs[rank] = lends ? own_reservation()->begin + offer.output : nullptr;
  } else {
    lane.reach.inputs[rank] = gives ? peers.at(rank, offer.input, given_by(lane, call, rank)) : nullptr;
    lane.reach.outputs[rank] = lends ? peers.at(rank, offer.output, call.signature.result_bytes()) : nullptr;
  }
}

// When a rank first offers arena memory, all ranks map it, but they read it only from the next call on: one of them may fail to
// map.
bool everybody_maps(Lane& lane, const Call& call) {
  MappedPeers* peers = lane.reach.mapped_peers.get();
  if (peers == nullptr) return false;
  bool all = true, every_rank_reaches = true;
  for (int rank = 0; rank < lane.ranks(); ++rank) {
    const Offer offer = offer_of(lane, rank);
    every_rank_reaches = every_rank_reaches && offer.maps;
    const bool is_new = offer.offers() && !peers->knows(rank);
    if (is_new) peers->meet(rank);
    find_buffers(lane, call, rank, offer);
    all = all && !is_new && (lane.reach.inputs[rank] != nullptr || !is_read(call.signature, rank));
  }
  if (!every_rank_reaches) lane.reach.mapped_peers.reset();
  return all && every_rank_reaches;
}

bool every_output_is_mapped(const Lane& lane) {
  for (int rank = 0; rank < lane.ranks(); ++rank)
    if (lane.reach.outputs[rank] == nullptr) return false;
  return true;
}

Offers offers_of_all(Lane& lane, const Call& call) {
  Offers all;
  for (int rank = 0; rank < lane.ranks(); ++rank) {
    const Offer offer = offer_of(lane, rank);
    all.all_read = all.all_read && offer.reads;
    all.all_in_place = all.all_in_place && offer.in_place;
    all.any_in_place = all.any_in_place || offer.in_place;
    all.any_waits_long = all.any_waits_long || offer.waits_long;
  }
  all.mapped = everybody_maps(lane, call);
  all.outputs_mapped = all.mapped && every_output_is_mapped(lane);
  return all;
}

}  // namespace

Offer offer_of(const Lane& lane, int peer) {
  Offer offer;
  std::memcpy(&offer, lane.line_of(peer), sizeof offer);
  return offer;
}

size_t longest_of_all(const Lane& lane) {
  uint64_t most = 0;
  for (int rank = 0; rank < lane.ranks(); ++rank) most = std::max(most, offer_of(lane, rank).longest);
  return most;
}

Offer make_offer(Lane& lane, const Call& call) {
  Offer offer{.source = call.send};
  if (call.signature.row().has_pairs()) offer.longest = call.input(lane.ranks()).most();
  offer.reads = lane.reach.memory && lane.reach.memory->reaches_all();
  offer.waits_long = lane.reach.waits_long;
  offer.in_place = is_in_place(call, call.output(lane.ranks()), lane.rank());
  if (const MappedPeers* peers = lane.reach.mapped_peers.get()) {
    offer.maps = peers->reaches_all();
    if (own_reservation() != nullptr) offer_arena(lane, call, offer);
  }
  return offer;
}

void enter_with_offer(Lane& lane, const Task& task, const Offer& offer) {
  std::memcpy(lane.next_line(), &offer, sizeof offer);
  lane.enter(task.call, task.number, nullptr, 0);
}

Route route_past_mailbox(const Lane& lane, const Call& call, const Offers& offers) {
  return route_of({call, lane.shape(), lane.reach.attaching, offers, lane.box_bytes(), true, lane.reach.long_slices});
}

Route route_by_offers(Lane& lane, const Call& call) {
  lane.reach.last_offers = offers_of_all(lane, call);
  if (!lane.reach.last_offers.all_read) lane.reach.attaching.is_open = false;
  const Route route = route_past_mailbox(lane, call, lane.reach.last_offers);
  // From the next call on, since ranks may have put the first slice of this one ahead.
  lane.reach.long_slices = lane.reach.last_offers.any_waits_long;
  return route;
}

Route route_without_attach(const Lane& lane, const Call& call) {
  Offers offers = lane.reach.last_offers;
  offers.all_read = false;
  return route_past_mailbox(lane, call, offers);
}

}  // namespace fccl::core
