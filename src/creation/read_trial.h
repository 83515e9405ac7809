// The trial by which the ranks of a host find out whether they had better read each other's memory.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "operations/control.h"

namespace fccl {

class InitCalls;
class Lane;

// What reads_faster makes.
inline constexpr int kTrialRounds = 4;
inline constexpr uint64_t kTrialCalls = 2 * kTrialRounds + 1;
static_assert(kEarliestNumber + 1 + kTrialCalls <= kFirstNumber, "behind the first barrier");

// Whether blocks come faster where each rank reads its peers' memory than through slots. All ranks of the host ask together,
// and get the same answer; `lane` is the one that AlltoAll takes, attached. Error: a call failed.
Result<bool> reads_faster(InitCalls& calls, Lane& lane);

}  // namespace fccl
