// IntraHostRelay: runs the host's half of a call between hosts, as a sequence of rounds through the slots of the host's
// segment.
//
// In a round every rank fills its slots, or leaves them empty, publishes the round, and takes its data out of its peers' slots.
// Rounds are numbered through all calls of the lane, and a rank's slots alternate: a rank that has published round r has taken
// everything out of round r - 2, so no slot is overwritten too early. Every rank of a host goes through the same rounds, which
// hierarchical/relay_rounds.h lists.
#pragma once

#include <cstdint>

#include "hierarchical/down_round.h"
#include "hierarchical/pair_rounds.h"
#include "hierarchical/relay_context.h"
#include "hierarchical/relay_rounds.h"
#include "hierarchical/up_round.h"
#include "waiting/counter.h"

namespace fccl::core {

// Lives in the frame of the phase of a call, and stays at its address, which its rounds know.
class IntraHostRelay {
 public:
  // `longest`: the bytes of the longest block that any rank sends to any other, in a call with a block for each pair of ranks.
  // Such a call must have told the lane's PairBlocks where its blocks lie.
  IntraHostRelay(Lane& lane, HierarchicalLane& hierarchical, const Task& task, size_t longest);
  IntraHostRelay(const IntraHostRelay&) = delete;
  IntraHostRelay& operator=(const IntraHostRelay&) = delete;

  // Begins the inter-host call; all ranks of the host must be known to have made the call.
  void begin();
  // Goes on to the next round; false after the last one.
  bool next();
  // Returns the current round's number among all rounds of the lane.
  uint64_t number() const { return context_.number; }
  bool begins_up() const { return kind() == RoundKind::up; }
  // Returns the point that this rank must wait for before it puts.
  Awaited may_put() const;
  void put();
  void take(int peer);
  // Ends the round; every peer's part must have been taken.
  void finish();
  // Keeps the counts for the AlltoAllV; runs after the last round of the call that brought them.
  void keep_counts();

 private:
  RoundKind kind() const { return context_.round.kind; }
  bool has_pairs() const { return context_.row().has_pairs(); }
  Turns turns() const;

  RelayContext context_;
  UpRound up_;
  DownRound down_;
  PairRounds pairs_;
  RoundSequence sequence_;
};

}  // namespace fccl::core
