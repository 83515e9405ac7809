// Tries by which way the ranks of a host pass long blocks the fastest.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "health/call_numbers.h"

namespace fccl::core {

class InitCalls;
class Lane;

// Counts of the calls that try_ways makes.
inline constexpr int kTrialRounds = 3, kTrialWays = 3;
inline constexpr uint64_t kTrialCalls = kTrialWays * kTrialRounds + 3;
static_assert(kEarliestNumber + 1 + kTrialCalls <= kFirstNumber, "behind the first barrier");

// Times of blocks through slots, divided by those of other ways; above 1 the other way is faster.
struct Gains {
  double reading = 0;    // each rank reads its peers' memory; 0 if it cannot. The faster way through slots counts.
  double streaming = 0;  // slots are written past the caches
};

// All ranks of the host call it together, and get the same answer; `lane` is the lane of AlltoAll. Error: a call failed.
Result<Gains> try_ways(InitCalls& calls, Lane& lane);

}  // namespace fccl::core
