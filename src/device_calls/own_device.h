// OwnDevice: a communicator's GPU, as the thread that issues calls checks it, orders calls on it, waits, and tells failures.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/call.h"
#include "device/device.h"
#include "device/lane.h"
#include "operations/stream.h"
#include "waiting/wait_limit.h"

namespace fccl::core {

struct CommunicatorState;

// Example: "cuda:0 (NVIDIA H100)".
std::string name_of(const Device& device);

// A lane of the GPU, and what this thread knows of it. The path whose calls it runs owns it.
struct OwnLane {
  // Once no thread issues calls: says whether the GPU has done all that it was given; and whether it has begun a call that is
  // not done.
  Result<bool> is_drained() const;
  bool has_begun() const;
  // Gives the GPU's side to the retired lanes.
  void retire();

  std::unique_ptr<DeviceLane> device;  // null before its first call
  std::unique_ptr<Stream> stream;      // runs the worker's half of calls that bounce through host memory; else null
  bool gpu_arrived = false;            // the GPU has reached the last call that this thread waits for
};

// A communicator's DeviceCalls owns it; it uses a CommunicatorState that it does not own. The thread that issues calls uses it,
// and the thread that ends the communicator once no thread is inside a call.
class OwnDevice {
 public:
  // Says which ends of a call lie in pinned host memory. This thread copies from and to these once the GPU has reached the
  // call: a driver's copy between two host places would keep the thread inside the driver until then.
  struct HostEnds {
    bool input = false;
    bool output = false;
    bool scalar = false;
    bool any() const { return input || output || scalar; }
  };
  // A wait of this thread that no other rank takes part in.
  struct Wait {
    std::function<Result<bool>()> done;
    std::function<uint64_t()> progress;  // the deadline begins anew when it changes
    std::function<std::string()> what;   // "to come to AllGather of 4 int8 (call 7)"
    CancelCheck cancel_check{};
  };

  OwnDevice(std::shared_ptr<Device> device, CommunicatorState& state) : device_(std::move(device)), state_(state) {}
  OwnDevice(const OwnDevice&) = delete;
  OwnDevice& operator=(const OwnDevice&) = delete;

  const std::shared_ptr<Device>& device() const { return device_; }
  Result<void> check_stream(const std::string& what, void* stream);
  // Returns where a pointer points to, if calls may use that memory; `name` is the name of the argument.
  Result<MemoryPlace> check_place(const char* name, const void* pointer) const;
  Result<HostEnds> check_buffers(const Call& call) const;
  bool is_on_host(const void* pointer) const { return device_->place_of(pointer) == MemoryPlace::pinned_host; }

  // Each call from now on ends by setting this mark of the user's, and its stream does not wait for it. Such calls come one
  // after the other. After a null mark the stream continues after a call again.
  void set_end(Mark end) { end_ = end; }
  // Makes a call on the lane begin after the user's stream.
  Result<void> fork(DeviceLane& lane, Queue user);
  // Lets the user continue after a call: the stream, or what awaits the mark of set_end.
  Result<void> join(DeviceLane& lane, Queue user);
  // Ends a call of which something is on the GPU's queue, whatever happened. `joined`: whether the user waits for it.
  Result<void> conclude(const std::string& what, Result<void> result, Result<void> joined);

  // Blocks until the GPU is where the wait says. If the GPU does not get there by the deadline, the communicator fails.
  Result<void> await(const Wait& wait);
  Result<void> await_idle(DeviceLane& lane, const std::function<std::string()>& what);
  // Fails the communicator on all ranks with the GPU's error in this rank's work.
  Error raise(const std::string& what, const Error& error);

 private:
  std::shared_ptr<Device> device_;
  CommunicatorState& state_;
  Mark end_;                                // null: the stream of a call continues after it
  const DeviceLane* last_ended_ = nullptr;  // the lane of the last call that ended by a mark of the user's
};

}  // namespace fccl::core
