// Barriers and exchanges before there is a communicator.
#include "creation/init_calls.h"

#include <algorithm>

#include "creation/parts.h"
#include "hierarchical/columns.h"
#include "system/failure_timing.h"

namespace fccl {

Result<void> InitCalls::barrier() { return run({{fcclCollBarrier, fcclInt8, ReduceOp::sum, -1, 0, Issuer::init}}); }

Result<void> InitCalls::exchange(const void* mine, void* all, size_t bytes) {
  return run(exchange_of(Issuer::init, mine, all, bytes));
}

// Nobody else issues calls yet, so the lane is idle.
Result<void> InitCalls::run(const Call& call) {
  LaneQueue& lane = parts_.lanes[lane_of(call.signature.collective)];
  return IssuedCall(parts_.around(), lane, {call, parts_.number++}, timeout()).run();
}

// A leader may wait for other hosts: it speaks before its host does.
std::chrono::milliseconds InitCalls::timeout() const {
  const std::chrono::milliseconds left(std::max(1, deadline_.remaining_ms()));
  return parts_.columns->hosts() > 1 && parts_.columns->local() > 0 ? left + kBehindLeader : left;
}

}  // namespace fccl
