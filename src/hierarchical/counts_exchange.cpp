// Builds the call, and compares the counts that it brought.
#include "hierarchical/counts_exchange.h"

#include <algorithm>

namespace fccl::core {

CountsExchange::CountsExchange(int ranks) : mine_(static_cast<size_t>(ranks)), theirs_(static_cast<size_t>(ranks)) {
  std::vector<ByteRange> each(mine_.size());
  for (size_t rank = 0; rank < each.size(); ++rank) each[rank] = {rank * sizeof(Told), sizeof(Told)};
  blocks_.input.set(each);
  blocks_.output.set(each);
}

Call CountsExchange::begin(const Call& call) {
  const int ranks = static_cast<int>(mine_.size());
  for (int rank = 0; rank < ranks; ++rank)
    mine_[static_cast<size_t>(rank)] = {counts_for(call, rank, ranks), call.input(ranks).most()};
  return {.signature = call.signature, .send = mine_.data(), .recv = theirs_.data(), .uneven = &blocks_};
}

std::optional<OtherCounts> CountsExchange::compare(const Call& call) const {
  const int ranks = static_cast<int>(mine_.size());
  for (int rank = 0; rank < ranks; ++rank) {
    const PairCounts& theirs = theirs_[static_cast<size_t>(rank)].counts;
    if (!agree(counts_for(call, rank, ranks), theirs)) return other_counts(rank, theirs);
  }
  return {};
}

size_t CountsExchange::longest() const { return std::ranges::max(theirs_, {}, &Told::longest).longest; }

}  // namespace fccl::core
