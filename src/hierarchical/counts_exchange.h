// CountsExchange: tells the ranks of several hosts the counts of an AlltoAllV before it moves anything.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/call.h"
#include "host/pair_counts.h"

namespace fccl::core {

// One rank has one per lane; the one thread that runs the lane's current call uses it. The exchange is a call of its own, an
// AlltoAll with a few numbers for each pair of ranks.
class CountsExchange {
 public:
  explicit CountsExchange(int ranks);

  // Returns the call that exchanges the counts of `call`; peers compare it as if it were `call`.
  Call begin(const Call& call);
  // Runs once the counts are there: compares the two counts of every block, here and on all other ranks. Returns the first
  // difference.
  std::optional<OtherCounts> compare(const Call& call) const;
  // Returns the bytes of the longest block between any two ranks.
  size_t longest() const;

 private:
  // The numbers that one rank tells another, in bytes; the bytes of the block between them come first.
  struct Told {
    PairCounts counts;
    uint64_t longest = 0;
  };

  std::vector<Told> mine_, theirs_;  // by rank
  UnevenBlocks blocks_;
};

}  // namespace fccl::core
