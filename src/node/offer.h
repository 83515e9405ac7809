// Offer: what a rank says beside its word about the memory of a call, so that all ranks agree on how it is read.
#pragma once

#include <cstdint>

#include "arena/reservation.h"
#include "node/path_name.h"
#include "node/phases.h"

namespace fccl {

// All ranks see the same offers, and so come to the same answer without another round.
struct Offer {
  enum Answer : uint8_t { kNever, kNotNow, kYes };

  const void* source = nullptr;  // private memory, to be read by attach
  uint64_t input = kNotInArena;  // where the buffers lie in the rank's arena
  uint64_t output = kNotInArena;
  uint64_t longest = 0;  // bytes of its longest block for a peer, where they differ
  Answer attaches = kNever;
  bool overlaps = false;  // its output overlaps its input
  bool maps = false;      // has mapped every arena of which it was told

  bool offers() const { return input != kNotInArena || output != kNotInArena; }
};
static_assert(sizeof(Offer) <= sizeof(Box::line), "an offer comes with the word's line");

// Of a peer that has entered.
Offer offer_of(const Lane& lane, int peer);

// Where blocks are for pairs: bytes of the longest one of any rank, when all have entered.
size_t longest_of_all(const Lane& lane);

// Enters the call with this rank's offer; nothing where another phase has done so.
void enter_with_offer(Lane& lane, const Task& task);

// Every rank has entered: whether their offers lead to another path than `here`, which the lane then names as settled. Never
// where another phase has settled it. For a mapped path it says in the lane where the ranks' buffers lie.
bool settles_elsewhere(Lane& lane, const Task& task, Path here);

// Whether ranks may attach for a call at all; the offers decide.
bool may_attach(const Lane& lane, const Call& call);

}  // namespace fccl
