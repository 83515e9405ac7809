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

// The phase has not completed the call, on any rank. All ranks have entered it, and go on by one route.
struct GoOnBy {
  Route route;
};

// Some rank's data does not fit in its box; every rank enters the call anew, with an offer.
struct PastMailbox {};

// The communicator has failed, and its failure may have spoiled the result.
struct Failed {};

using Outcome = std::variant<Done, Differs, OtherCounts, GoOnBy, PastMailbox, Failed>;

inline Outcome done_unless(bool failed) {
  if (failed) return Failed{};
  return Done{};
}

}  // namespace fccl::core
