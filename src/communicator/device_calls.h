// DeviceCalls: a communicator's calls on GPU memory, from their arguments until the user's stream continues after them.
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

namespace fccl::core {

class Stream;
struct Parts;
struct Settings;

// A communicator of GPU memory owns it; it uses Parts that it does not own. The thread that issues calls uses it, and the
// thread that ends the communicator once no thread is inside a call. After a failure nothing starts, and the worker releases
// programs that the GPU already has. It is destroyed when the lanes are idle; work that the GPU has not finished by then is
// retired.
class DeviceCalls {
 public:
  // Runs before the ranks meet. Error: fcclInvalidUsage, for settings that this GPU or this number of ranks does not allow.
  static Result<void> check(const Device& device, const Settings& settings, int ranks);
  DeviceCalls(std::shared_ptr<Device> device, const Settings& settings, Parts& parts);
  ~DeviceCalls();
  DeviceCalls(const DeviceCalls&) = delete;
  DeviceCalls& operator=(const DeviceCalls&) = delete;

  Device& device() const { return *device_; }
  // Returns where a pointer points to, if calls may use that memory; `name` is the name of the argument.
  Result<MemoryPlace> check_place(const char* name, const void* pointer) const;
  // Runs a call whose arguments have been checked. `scalar`: this rank's factor, if it lies on the GPU, else null.
  Result<void> run(const Call& call, const void* scalar, void* stream);
  // ---- Calls that run as a whole in host memory, and transfers, whose peers need not be in any call. set_up makes what they
  // need, after all ranks have met in the creation; the ranks meet again after it by `deadline`.
  Result<void> set_up(Deadline deadline);
  Result<void> check(const CallOrTransfer& operation, const OnDevice& on_device);
  // Returns once the user's stream has reached the call and the input is on the host.
  Result<void> bring_in(const StagedCall& call);
  // Follows every successful bring_in, even if the call failed: the user's stream continues after it. `has_result`: if false
  // there is nothing to copy.
  Result<void> take_out(const StagedCall& call, bool has_result);
  // ---- Precedes a call on host memory of the lane: waits until the lane's calls on GPU memory are done, or the wait is
  // cancelled.
  Result<void> await_lane(LaneId lane, Issuer who_waits, const CancelCheck& cancel_check);
  // Waits until the GPU has done everything that was issued. A GPU that does not get there fails the communicator at the
  // deadline.
  Result<void> await_all(const CancelCheck& cancel_check = {});
  // Waits likewise, but no longer than 2 s, and not for calls that the GPU has not reached: calls that are left fail the
  // communicator.
  void leave();

  // Fails the communicator on all ranks with the GPU's error in this rank's work.
  Error raise(const std::string& what, const Error& error);

 private:
  struct OwnLane {
    std::unique_ptr<DeviceLane> device;  // null before its first call
    std::unique_ptr<Stream> stream;      // runs the worker's half of calls that bounce through host memory
    bool gpu_arrived = false;            // the GPU has reached the last call of the blocking path
  };
  // The staged calls' lane comes after the communicator's lanes.
  static constexpr size_t kStaging = kLanes;
  // Says which ends of a call lie in pinned host memory. This thread copies from and to these once the GPU has reached the
  // call: a driver's copy between two host places would keep the thread inside the driver until then.
  struct HostEnds {
    bool input = false;
    bool output = false;
    bool scalar = false;
    bool any() const { return input || output || scalar; }
  };

  // A call that is being issued.
  struct Issue {
    OwnLane& lane;
    LaneQueue& queue;
    const SubCalls& calls;
    Task task;
    const void* scalar;
    HostEnds on_host;
    Queue user;
  };

  // A wait of this thread that no other rank takes part in.
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

}  // namespace fccl::core
