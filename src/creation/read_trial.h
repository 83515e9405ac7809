// Tries whether the ranks of a host gain by reading each other's memory.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "health/call_numbers.h"

namespace fccl::core {

class InitCalls;
class Lane;

// Counts of the calls that gain_of_reading makes.
inline constexpr int kTrialRounds = 4;
inline constexpr uint64_t kTrialCalls = 2 * kTrialRounds + 2;
static_assert(kEarliestNumber + 1 + kTrialCalls <= kFirstNumber, "behind the first barrier");

// Returns the time of blocks through slots, divided by their time where each rank reads its peers' memory; 0 if it cannot read.
// All ranks of the host call it together, and get the same answer; `lane` is the lane of AlltoAll, attached. Error: a call
// failed.
Result<double> gain_of_reading(InitCalls& calls, Lane& lane);

}  // namespace fccl::core
