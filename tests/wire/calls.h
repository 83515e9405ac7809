// Calls: collectives over the hosts of a group, checked bit by bit against what they mean.
#pragma once

#include <ostream>
#include <string>

#include "shares.h"
#include "wire/group.h"

namespace fccl::core::testing {

// A collective, and the way it goes: the name of an algorithm of the catalog, or "entries" for the one that is chosen, which is
// beside the entries if the call is short.
struct Way {
  fcclColl_t collective;
  std::string algorithm;
};

inline std::string name_of(const Way& way) { return std::string(fccl::core::name_of(way.collective)) + "_by_" + way.algorithm; }
inline void PrintTo(const Way& way, std::ostream* out) { *out << name_of(way); }

struct Calls {
  Way way;
  fcclDataType_t dtype = fcclInt8;
  ReduceOp op = ReduceOp::sum;
  size_t count = 0;
  int times = 1;
  int root = 0;  // the root of a rooted collective
  bool in_place = false;
  int lane = 0;
  uint64_t first_number = 0xfffffffe;
  // The counts of collectives whose blocks have their own, up to `count`.
  Shares shares = Shares::random;
  bool is_displaced = false;

  Counts counts(int ranks, int iteration) const {
    return {way.collective, ranks, count, shares, is_displaced, static_cast<int>(count) + iteration};
  }
};

// Every rank runs the calls, one behind the other; outputs are poisoned before each. A wrong byte, a byte beside the output,
// an error or a mismatch is a failure of the running test. False if there was any.
bool run_calls(Group& group, const Calls& calls);
// The part of one rank, for tests that run several lanes at once.
bool run_calls_of(Group& group, int rank, const Calls& calls);

// All ways that there are.
std::vector<Way> all_ways();

}  // namespace fccl::core::testing
