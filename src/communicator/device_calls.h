// DeviceCalls: a communicator's calls on GPU memory, from their arguments to the user's stream that goes on behind them.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/call.h"
#include "communicator/staged_call.h"
#include "device/device.h"
#include "device/lane.h"
#include "device/sub_calls.h"
#include "operations/issued_call.h"
#include "system/clock.h"
#include "system/wait_limit.h"

namespace fccl {

class Stream;
struct Parts;
struct Settings;

// Owned by a communicator of GPU memory, over parts that it does not own. The thread that issues calls uses it; whoever ends
// the communicator does when no thread is inside a call. After a failure nothing starts, and programs that are out are released
// by the worker. Destroyed when the lanes are idle; what the GPU has not done by then is retired.
class DeviceCalls {
 public:
  // Before the ranks meet. Error: fcclInvalidUsage, for settings that this GPU or so many ranks cannot have.
  static Result<void> check(const Device& device, const Settings& settings, int ranks);
  DeviceCalls(std::shared_ptr<Device> device, const Settings& settings, Parts& parts);
  ~DeviceCalls();
  DeviceCalls(const DeviceCalls&) = delete;
  DeviceCalls& operator=(const DeviceCalls&) = delete;

  Device& device() const { return *device_; }
  // Where a pointer points to, if calls may use that; `name` is that of the argument.
  Result<MemoryPlace> check_place(const char* name, const void* pointer) const;
  // Of a call whose arguments have been checked. `scalar`: this rank's factor, if it lies on the GPU, else null.
  Result<void> run(const Call& call, const void* scalar, void* stream);
  // ---- Of calls that run as a whole in host memory, and of transfers, whose peer need be in no other call.
  // Makes what they need, when all ranks have met in the creation; they meet behind it by `deadline`.
  Result<void> set_up(Deadline deadline);
  Result<void> check(const CallOrTransfer& operation, const OnDevice& on_device);
  // Returns when the user's stream has come to the call, and what goes in is on the host.
  Result<void> bring_in(const StagedCall& call);
  // After bring_in has succeeded, whatever came of the call: the user's stream goes on behind it.
  // `has_result`: else there is nothing to copy.
  Result<void> take_out(const StagedCall& call, bool has_result);
  // ----
  // Before a call on host memory of the lane: waits until those on GPU memory are through, or the wait is cancelled.
  Result<void> await_lane(LaneId lane, Issuer who_waits, const CancelCheck& cancel_check);
  // Until the GPU has done all that was issued. A GPU that does not come to it fails the communicator at the deadline.
  Result<void> await_all(const CancelCheck& cancel_check = {});
  // The same, but no longer than 2 s, and not for calls that the GPU has not come to: if any are left, they fail the
  // communicator.
  void leave();

  // What the GPU said of something of this rank ends the communicator for all.
  Error raise(const std::string& what, const Error& error);

 private:
  struct OwnLane {
    std::unique_ptr<DeviceLane> device;  // null before its first call
    std::unique_ptr<Stream> stream;      // the worker's half, for bounce
    bool gpu_has_come = false;           // by the blocking path, to its last call
  };
  // The place of the lane that staged calls go through, behind those of the communicator's lanes.
  static constexpr size_t kStaging = kLanes;
  // Which ends of a call lie in pinned host memory. This thread copies from and to these, when the GPU has come to the call: a
  // driver's copy between two host places would keep it inside the driver until then.
  struct HostEnds {
    bool input = false;
    bool output = false;
    bool scalar = false;
    bool any() const { return input || output || scalar; }
  };

  // One call on its way.
  struct Issue {
    OwnLane& lane;
    LaneQueue& queue;
    const SubCalls& calls;
    Task task;
    const void* scalar;
    HostEnds on_host;
    Queue user;
  };

  // What is waited for on this thread that no other rank does.
  struct OwnWait {
    std::function<Result<bool>()> done;
    std::function<uint64_t()> progress;  // the deadline begins anew when it changes
    std::function<std::string()> what;   // "to come to AllGather of 4 int8 (call 7)"
    CancelCheck cancel_check{};
  };

  Result<void> check_stream(const std::string& what, void* stream);
  Result<HostEnds> check_buffers(const Call& call) const;
  bool is_on_host(const void* pointer) const;
  Result<void> prepare(Issue& issue);
  Result<void> meet(const Issue& issue, uint32_t part);
  Result<void> bounce(Issue& issue);
  Result<void> block(Issue& issue);
  Result<void> run_sub_call(Issue& issue, uint64_t part);
  Result<void> bring_in(Issue& issue, uint64_t part);
  Result<void> take_out(const Issue& issue, uint64_t part);
  Result<void> copy(const Issue& issue, const Copies& copies);
  Result<void> await_own_gpu(const Issue& issue);
  Result<void> await_idle(DeviceLane& lane, const std::function<std::string()>& what);
  Result<void> copy_in(const StagedCall& call);
  Result<void> copy_out(const StagedCall& call);
  Result<void> make_room(const StagedCall& call);
  Result<void> await_staging(const StagedCall& call);
  Result<void> conclude(const std::string& what, Result<void> result, Result<void> joined);
  Result<void> await(const OwnWait& wait);
  bool lanes_are_idle() const;
  Result<bool> is_drained() const;
  bool has_begun() const;

  std::shared_ptr<Device> device_;
  Parts& parts_;
  bool bounces_;
  DeviceLaneShape shape_;
  size_t staging_bytes_ = 0;
  std::array<OwnLane, kLanes + 1> lanes_;
};

}  // namespace fccl
