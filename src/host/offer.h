// Offer: a rank's description of a call's memory, beside its word, from which all ranks choose how to read it.
#pragma once

#include <cstdint>

#include "arena/reservation.h"

namespace fccl::core {

class Lane;
struct Call;
struct Offers;
struct Route;
struct Task;

// All ranks see the same offers, so they choose alike without another round of messages.
struct Offer {
  const void* source = nullptr;  // private memory that peers may read by attach
  uint64_t input = kNotInArena;  // offsets of the buffers in the rank's arena
  uint64_t output = kNotInArena;
  uint64_t longest = 0;     // bytes of the longest block for a peer, if blocks differ
  bool reads = false;       // the rank can read its peers' private memory
  bool in_place = false;    // its own block lies in its output already
  bool maps = false;        // it has mapped every arena that it was told of
  bool waits_long = false;  // it has waited long for others in its last call through slots

  bool offers() const { return input != kNotInArena || output != kNotInArena; }
};

// Returns the offer of a peer that has entered.
Offer offer_of(const Lane& lane, int peer);

// Returns the bytes of the longest block of any rank, in a collective with a block per pair. All ranks must have entered.
size_t longest_of_all(const Lane& lane);

// Returns what this rank offers for a call.
Offer make_offer(Lane& lane, const Call& call);

// Announces the call with this rank's offer.
void enter_with_offer(Lane& lane, const Task& task, const Offer& offer);

// Returns the route that the offers of all ranks select. All ranks must have entered. For a mapped route it also stores the
// addresses of all ranks' buffers in the lane.
Route route_by_offers(Lane& lane, const Call& call);

// Returns the route of a call past the mailbox that some offers would select.
Route route_past_mailbox(const Lane& lane, const Call& call, const Offers& offers);

// Returns the route of a call that all ranks have entered, when a rank could not read its peers' memory.
Route route_without_attach(const Lane& lane, const Call& call);

}  // namespace fccl::core
