// PairCounts: what two ranks tell each other of the blocks between them where every pair has counts of its own.
#pragma once

#include <cstdint>

#include "base/call.h"
#include "system/phase.h"

namespace fccl {

// What a rank tells a peer, in bytes: of the block that it sends it, and of the one that it expects from it.
struct PairCounts {
  uint64_t sends = 0;
  uint64_t expects = 0;
};

inline PairCounts counts_for(const Call& call, int peer, int ranks) {
  return {call.input(ranks).bytes(peer), call.output(ranks).bytes(peer)};
}

// Whether both take the same for the blocks between them; each of the two compares, so that both find out.
inline bool agree(const PairCounts& mine, const PairCounts& theirs) {
  return mine.sends == theirs.expects && mine.expects == theirs.sends;
}

// The peer, as the communicator counts it, has other counts.
inline Outcome other_counts(int peer, const PairCounts& theirs) {
  return {.differing_rank = peer, .counts_differ = true, .sends = theirs.sends, .expects = theirs.expects};
}

}  // namespace fccl
