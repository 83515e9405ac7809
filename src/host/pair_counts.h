// PairCounts: the sizes of the blocks between two ranks, if every pair has counts of its own.
#pragma once

#include <cstdint>

#include "base/call.h"
#include "host/outcome.h"

namespace fccl::core {

// A rank's message to a peer: the bytes that it sends to the peer, and the bytes that it expects from it.
struct PairCounts {
  uint64_t sends = 0;
  uint64_t expects = 0;
};

inline PairCounts counts_for(const Call& call, int peer, int ranks) {
  return {call.input(ranks).bytes(peer), call.output(ranks).bytes(peer)};
}

// True if both ranks have the same sizes. Both compare, so both find a difference.
inline bool agree(const PairCounts& mine, const PairCounts& theirs) {
  return mine.sends == theirs.expects && mine.expects == theirs.sends;
}

// Reports that a peer, given by the communicator's number, has other counts.
inline OtherCounts other_counts(int peer, const PairCounts& theirs) {
  return {.rank = peer, .sends = theirs.sends, .expects = theirs.expects};
}

}  // namespace fccl::core
