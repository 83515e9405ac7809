// StagedPath: the way of calls and transfers on GPU memory that run as a whole in host memory: moves their bytes there and
// back.
#pragma once

#include <cstddef>

#include "device_calls/own_device.h"
#include "device_calls/staged_call.h"
#include "os/clock.h"

namespace fccl::core {

struct CommunicatorState;
struct Settings;

// A communicator's DeviceCalls owns it. The thread that issues calls uses it. Peers of a transfer need not be in any call.
// After a failure nothing starts.
class StagedPath {
 public:
  StagedPath(OwnDevice& gpu, const Settings& settings, CommunicatorState& state);
  StagedPath(const StagedPath&) = delete;
  StagedPath& operator=(const StagedPath&) = delete;

  // Makes the lane. The creation calls it once all ranks have met, and it makes the ranks meet again, by `deadline`.
  Result<void> set_up(Deadline deadline);
  Result<void> check(const CallOrTransfer& operation, const OnDevice& on_device);
  // Returns once the user's stream has reached the call and the input is on the host.
  Result<void> bring_in(const StagedCall& call);
  // Follows every successful bring_in, even if the call failed: the user's stream continues after it. `has_result`: if false
  // there is nothing to copy.
  Result<void> take_out(const StagedCall& call, bool has_result);
  OwnLane& lane() { return lane_; }

 private:
  Result<void> copy_in(const StagedCall& call);
  Result<void> copy_out(const StagedCall& call);
  void count_copied(const StagedCall& call);
  Result<void> make_room(const StagedCall& call);
  Result<void> await_copies(const StagedCall& call);

  OwnDevice& gpu_;
  CommunicatorState& state_;
  DeviceLaneShape shape_;
  OwnLane lane_;
};

}  // namespace fccl::core
