// DeviceCalls: a communicator's calls on GPU memory: the two ways that they go, and how they end.
#pragma once

#include <memory>

#include "base/result.h"
#include "base/signature.h"
#include "segment/lane_id.h"
#include "waiting/wait_limit.h"

namespace fccl::core {

class Device;
class DevicePath;
class OwnDevice;
class StagedPath;
struct CommunicatorState;
struct Settings;

// A communicator of GPU memory owns it; it uses a CommunicatorState that it does not own. The thread that issues calls uses it,
// and the thread that ends the communicator once no thread is inside a call. It is destroyed when the lanes are idle; work that
// the GPU has not finished by then is retired.
class DeviceCalls {
 public:
  DeviceCalls(std::shared_ptr<Device> device, const Settings& settings, CommunicatorState& state);
  ~DeviceCalls();
  DeviceCalls(const DeviceCalls&) = delete;
  DeviceCalls& operator=(const DeviceCalls&) = delete;

  OwnDevice& gpu() { return *gpu_; }
  DevicePath& path() { return *path_; }
  StagedPath& staged() { return *staged_; }

  // Precedes a call on host memory of the lane: waits until the lane's calls on GPU memory are done, or the wait is cancelled.
  Result<void> await_lane(LaneId lane, Issuer who_waits, const CancelCheck& cancel_check);
  // Waits until the GPU has done everything that was issued. A GPU that does not get there fails the communicator at the
  // deadline.
  Result<void> await_all(const CancelCheck& cancel_check = {});
  // Waits likewise, but no longer than 2 s, and not for calls that the GPU has not reached: calls that are left fail the
  // communicator.
  void leave();

 private:
  bool lanes_are_idle() const;
  Result<bool> is_drained();
  bool has_begun();

  CommunicatorState& state_;
  std::unique_ptr<OwnDevice> gpu_;
  std::unique_ptr<DevicePath> path_;
  std::unique_ptr<StagedPath> staged_;
};

}  // namespace fccl::core
