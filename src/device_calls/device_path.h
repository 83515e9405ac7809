// DevicePath: the way of a collective on GPU memory: by landing slots, or in sub-calls on host memory, while the caller waits
// (blocking) or not (bounce).
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/call.h"
#include "device/sub_calls.h"
#include "device_calls/landed_path.h"
#include "device_calls/own_device.h"
#include "segment/segment.h"

namespace fccl::core {

struct CommunicatorState;
struct Settings;

// A communicator's DeviceCalls owns it. The thread that issues calls uses it. After a failure nothing starts, and the worker
// releases programs that the GPU already has.
class DevicePath {
 public:
  // Error: fcclInvalidUsage, for settings that this GPU or this number of ranks does not allow.
  static Result<void> check(const Device& device, const Settings& settings, int ranks);
  DevicePath(OwnDevice& gpu, const Settings& settings, CommunicatorState& state);
  DevicePath(const DevicePath&) = delete;
  DevicePath& operator=(const DevicePath&) = delete;

  // Error: fcclInvalidUsage, equal on all ranks, for slots that take too much.
  Result<void> check_memory() const { return landed_.check_memory(); }
  // Runs a call whose arguments have been checked. `scalar`: this rank's factor, if it lies on the GPU, else null.
  Result<void> run(const Call& call, const void* scalar, void* stream);
  std::array<OwnLane, kLanes>& lanes() { return lanes_; }

 private:
  struct Issue;

  Result<void> prepare(Issue& issue);
  Result<void> meet(const Issue& issue, uint32_t part);
  Result<void> bounce(Issue& issue);
  Result<void> block(Issue& issue);
  Result<void> run_sub_call(Issue& issue, uint64_t part);
  Result<void> bring_in(Issue& issue, uint64_t part);
  Result<void> take_out(const Issue& issue, uint64_t part);
  static size_t bytes_on_host(const Issue& issue, uint64_t part);
  Result<void> copy(const Issue& issue, const Copies& copies);
  Result<void> await_own_gpu(const Issue& issue);
  AwaitRoom await_room_of(const Issue& issue);

  OwnDevice& gpu_;
  CommunicatorState& state_;
  bool bounces_;
  DeviceLaneShape shape_;
  LandedPath landed_;
  std::array<OwnLane, kLanes> lanes_;
};

}  // namespace fccl::core
