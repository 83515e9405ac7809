// Outcome: how a phase has ended.
#pragma once

#include <cstdint>
#include <variant>

#include "host/route.h"

namespace fccl::core {

// Ranks are given by the communicator's numbers.
struct Done {};

// The first rank found that made another call.
struct Differs {
  int rank;
};

// A rank made the same call with other counts: the bytes that it sends to this rank, and the bytes that it expects from it.
struct OtherCounts {
  int rank;
  uint64_t sends;
  uint64_t expects;
};

// The phase has not completed the call, on any rank; each rank goes on by a route for the same call.
struct GoOnBy {
  Route route;
  bool all_entered;  // ranks have entered the call and made their offers for it, and do neither again
};

// The communicator has failed, and its failure may have spoiled the result.
struct Failed {};

using Outcome = std::variant<Done, Differs, OtherCounts, GoOnBy, Failed>;

inline Outcome done_unless(bool failed) {
  if (failed) return Failed{};
  return Done{};
}

}  // namespace fccl::core
