// CountsExchange: how the ranks of several hosts come to know, before an AlltoAllV moves anything, what each has for each.
#pragma once

#include <cstdint>
#include <vector>

#include "base/call.h"
#include "node/pair_counts.h"
#include "system/phase.h"

namespace fccl {

// One rank's, of one lane; used by the one thread that runs the lane's current call. The exchange is a call of its own with a
// block of a few numbers for each pair of ranks, which goes the way of every AlltoAll.
class CountsExchange {
 public:
  explicit CountsExchange(int ranks);

  // The call that brings the counts of `call`; equal to it for peers.
  Call begin(const Call& call);
  // When they are there: whether this rank and all others take the same for the blocks between them.
  Outcome compare(const Call& call) const;
  // Of the longest block between any two ranks.
  size_t longest() const;

 private:
  // What one rank tells another, in bytes; first what the block between them has.
  struct Told {
    PairCounts counts;
    uint64_t longest = 0;
  };

  std::vector<Told> mine_, theirs_;  // by rank
  UnevenBlocks blocks_;
};

}  // namespace fccl
