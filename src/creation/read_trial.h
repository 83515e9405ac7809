// The trial by which the ranks of a host find out whether they had better read each other's memory.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "operations/control.h"

namespace fccl {

class InitCalls;
class Lane;

// What gain_of_reading makes.
inline constexpr int kTrialRounds = 4;
inline constexpr uint64_t kTrialCalls = 2 * kTrialRounds + 1;
static_assert(kEarliestNumber + 1 + kTrialCalls <= kFirstNumber, "behind the first barrier");

// How many times as long blocks take through slots as where each rank reads its peers' memory; 0 if it cannot. All ranks of the
// host ask together, and get the same answer; `lane` is the one that AlltoAll takes, attached. Error: a call failed.
Result<double> gain_of_reading(InitCalls& calls, Lane& lane);

}  // namespace fccl
