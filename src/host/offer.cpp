// Makes this rank's offer, and derives the path from all ranks' offers.
#include "host/offer.h"

#include <algorithm>
#include <cstring>

#include "host/mapped_peers.h"

namespace fccl::core {
namespace {

// The size from which an out-of-place result should be written past the caches, which process_vm_readv does not do. It is
// larger for AlltoAll, which copies every block twice on its way through slots.
constexpr size_t kPastCaches = 4 << 20, kSwappedPastCaches = 16 << 20;

// The most bytes that a rank reads from its peers to reduce a whole vector itself. Beyond it, ranks share the work.
constexpr size_t kReadWhole = 512 << 10;

// The size below which two ranks send an in-place vector through slots, because they wait for each other less often there.
constexpr size_t kInSlots = 256 << 10;

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
  lane.mapped_peers()->publish();
  offer.overlaps = call.send == call.recv;
  offer.input = offset_in_arena(call.send, given_by(lane, call, lane.rank()));
  if (call.signature.collective == fcclCollAllReduce) offer.output = offset_in_arena(call.recv, call.signature.result_bytes());
}

Offer::Answer answer_to_attach(const Lane& lane, const Call& call) {
  if (!lane.peer_memory().reaches_all()) return Offer::kNever;
  const Layout output = call.output(lane.ranks());
  const bool in_place = call.send == static_cast<std::byte*>(call.recv) + output.offset(lane.rank());
  const size_t past_caches = call.signature.row().has_pairs() ? kSwappedPastCaches : kPastCaches;
  return in_place || output.total() < past_caches || lane.reads_past_caches() ? Offer::kYes : Offer::kNotNow;
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
  const MappedPeers& peers = *lane.mapped_peers();
  if (rank == lane.rank()) {
    // Uses the offset, as peers do: an empty buffer may be null and still counts as offered.
    lane.inputs[rank] = gives ? own_reservation()->begin + offer.input : nullptr;
    lane.outputs[rank] = lends ? own_reservation()->begin + offer.output : nullptr;
  } else {
    lane.inputs[rank] = gives ? peers.at(rank, offer.input, given_by(lane, call, rank)) : nullptr;
    lane.outputs[rank] = lends ? peers.at(rank, offer.output, call.signature.result_bytes()) : nullptr;
  }
}

// When a rank first offers arena memory, all ranks map it, but they read it only from the next call on: one of them may fail to
// map.
bool everybody_maps(Lane& lane, const Call& call) {
  MappedPeers* peers = lane.mapped_peers();
  if (peers == nullptr) return false;
  bool all = true, every_rank_reaches = true;
  for (int rank = 0; rank < lane.ranks(); ++rank) {
    const Offer offer = offer_of(lane, rank);
    every_rank_reaches = every_rank_reaches && offer.maps;
    const bool is_new = offer.offers() && !peers->knows(rank);
    if (is_new) peers->meet(rank);
    find_buffers(lane, call, rank, offer);
    all = all && !is_new && (lane.inputs[rank] != nullptr || !is_read(call.signature, rank));
  }
  if (!every_rank_reaches) lane.stop_mapping();
  return all && every_rank_reaches;
}

bool everybody_attaches(Lane& lane) {
  Offer::Answer least = Offer::kYes;
  for (int rank = 0; rank < lane.ranks(); ++rank) least = std::min(least, offer_of(lane, rank).attaches);
  if (least == Offer::kNever) lane.stop_attaching();
  return least == Offer::kYes;
}

bool is_in_place_somewhere(const Lane& lane) {
  bool any_overlaps = false;
  for (int rank = 0; rank < lane.ranks(); ++rank) any_overlaps = any_overlaps || offer_of(lane, rank).overlaps;
  return any_overlaps;
}

// Selects the path of an AllReduce whose inputs lie in arenas. In the path "whole" every rank reduces the whole vector, and no
// rank waits for results. An in-place rank cannot take it, as it would overwrite data that its peers still read.
Path settle_all_reduce(const Lane& lane, const Signature& signature) {
  const bool in_place = is_in_place_somewhere(lane);
  if (lane.ranks() == 2 && in_place && signature.result_bytes() < kInSlots) return Path::ring;
  const bool is_short = signature.bytes() * static_cast<size_t>(lane.ranks() - 1) <= kReadWhole;
  return is_short && !in_place ? Path::whole : Path::mapped;
}

Path settle(Lane& lane, const Call& call) {
  if (everybody_maps(lane, call))
    return call.signature.collective == fcclCollAllReduce ? settle_all_reduce(lane, call.signature) : Path::mapped;
  return may_attach(lane, call) && everybody_attaches(lane) ? Path::attach : Path::ring;
}

}  // namespace

bool may_attach(const Lane& lane, const Call& call) {
  return lane.attaches() && call.signature.row().takes_known_blocks() &&
         call.output(lane.ranks()).most() >= lane.least_attached();
}

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

void enter_with_offer(Lane& lane, const Task& task) {
  if (task.settled) return;
  const Call& call = task.call;
  Offer offer{.source = call.send};
  if (call.signature.row().has_pairs()) offer.longest = call.input(lane.ranks()).most();
  if (may_attach(lane, call)) offer.attaches = answer_to_attach(lane, call);
  if (MappedPeers* peers = lane.mapped_peers()) {
    offer.maps = peers->reaches_all();
    if (own_reservation() != nullptr) offer_arena(lane, call, offer);
  }
  std::memcpy(lane.next_line(), &offer, sizeof offer);
  lane.enter(call, task.number, nullptr, 0);
}

bool settles_elsewhere(Lane& lane, const Task& task, Path here) {
  if (task.settled) return false;
  lane.set_settled(settle(lane, task.call));
  return lane.settled() != here;
}

}  // namespace fccl::core
