// Runs barriers and exchanges before there is a communicator.
#include "creation/init_calls.h"

#include <algorithm>

#include "operations/call_context.h"
#include "operations/communicator_state.h"
#include "operations/issued_call.h"
#include "os/processors.h"
#include "topology/columns.h"
#include "waiting/failure_timing.h"

namespace fccl::core {
namespace {

using std::chrono::microseconds;

// From this many ranks per core, waits sleep between polls: 32 us for each rank of the core, so that all others can poll once.
constexpr size_t kCrowd = 16;
constexpr microseconds kLook{32};

// Returns how long a rank sleeps between two polls if `ranks` share the processors that it may run on; 0: no sleep.
microseconds nap_among(size_t ranks) {
  const size_t ranks_per_core = ranks / std::max<size_t>(allowed_processors().count(), 1);
  return ranks_per_core < kCrowd ? microseconds{0} : static_cast<int>(ranks_per_core) * kLook;
}

}  // namespace

InitCalls::InitCalls(CommunicatorState& state, Deadline deadline)
    : state_(state), deadline_(deadline), nap_(nap_among(static_cast<size_t>(state.lanes[kGatherLane].lane.ranks()))) {}

Result<void> InitCalls::barrier() { return run({{fcclCollBarrier, fcclInt8, ReduceOp::sum, -1, 0, Issuer::init}}); }

Result<void> InitCalls::exchange(const void* mine, void* all, size_t bytes) {
  return run(exchange_of(Issuer::init, mine, all, bytes));
}

Result<void> InitCalls::swap(const void* given, void* taken, size_t block) {
  return run({{fcclCollAlltoAll, fcclUint8, ReduceOp::sum, -1, block, Issuer::init}, given, taken});
}

// No other thread issues calls yet, so the lane is idle.
Result<void> InitCalls::run(const Call& call) {
  LaneQueue& lane = state_.lanes[lane_of(call.signature.collective)];
  CallContext around = state_.around();
  around.nap = nap_;
  return IssuedCall(around, lane, {call, state_.number++}, timeout()).run();
}

// A leader may wait for other hosts: its deadline comes before those of the other ranks of its host, so that it reports first.
std::chrono::milliseconds InitCalls::timeout() const {
  const std::chrono::milliseconds left(std::max(1, deadline_.remaining_ms()));
  return state_.columns->hosts() > 1 && state_.columns->local() > 0 ? left + kBehindLeader : left;
}

}  // namespace fccl::core
