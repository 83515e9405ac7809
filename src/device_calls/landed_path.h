// LandedPath: the way of collectives whose bytes go from GPU to GPU by landing slots, untouched by a processor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/lane.h"
#include "device_calls/own_device.h"
#include "segment/lane_id.h"

namespace fccl::core {

class StepProgram;
struct CommunicatorState;
struct LaneQueue;
struct Settings;
struct Task;
enum class LandingKind : uint8_t;

// A communicator's DevicePath owns it. The thread that issues calls uses it. Gathers go by slots of the gather lane, and
// reductions for all ranks by pair slots of the pair lane, in the memory of GPUs alone.
class LandedPath {
 public:
  // A call that is being issued. `scalar`: as DevicePath has it.
  struct Issue {
    OwnLane& lane;
    LaneQueue& queue;
    const Task& task;
    const void* scalar;
    OwnDevice::HostEnds on_host;
    Queue user;
  };

  LandedPath(OwnDevice& gpu, const Settings& settings, CommunicatorState& state);
  LandedPath(const LandedPath&) = delete;
  LandedPath& operator=(const LandedPath&) = delete;

  // Error: fcclInvalidUsage, equal on all ranks, if the slots of both lanes take too much.
  Result<void> check_memory() const;
  // Gives a lane its slots, if every rank can have them and reach those of all others. All ranks call it between the same two
  // meetings; where they may not use slots it does nothing. It tries the kinds of slots that FCCL_CUDA_PATH allows in turn. If
  // one rank cannot have slots of a kind, all do without, and none fails. `task`: the lane's first call.
  Result<void> prepare(const Task& task, OwnLane& lane);
  // Refuses a call if FCCL_CUDA_PATH insists on slots that the ranks cannot have. Equal on all ranks, as `serves` is, whatever
  // their buffers.
  Result<void> check(const Call& call) const;
  bool serves(const OwnLane& lane, const Call& call) const { return lane.device->landing() != nullptr && is_landed(call); }
  // `await_room` waits for room in the lane's queue.
  Result<void> run(const Issue& issue, const AwaitRoom& await_room);

 private:
  // What a lane of the communicator has of slots.
  struct OfLane {
    std::vector<LandingKind> kinds;  // those that are tried, equal on all ranks
    size_t bytes = 0;                // of a rank's slots
    std::optional<Error> refusal{};
  };
  // The numbers of a call on its lane.
  struct Numbers {
    uint64_t call;
    uint64_t first_step;
    uint64_t steps;
  };

  bool is_landed(const Call& call) const;
  void give_to_worker(const Issue& issue, const Numbers& numbers);
  Result<void> enqueue(const Issue& issue, StepProgram& program, const AwaitRoom& await_room);
  void count_copied(const Issue& issue, size_t copied);
  // The steps are done on this thread.
  template <class DoSteps>
  Result<void> run_here(const Issue& issue, uint64_t steps, const AwaitRoom& await_room, DoSteps do_steps);

  OwnDevice& gpu_;
  CommunicatorState& state_;
  std::string path_;
  std::array<OfLane, kLanes> lanes_;
  size_t buffer_bytes_;  // of a lane's buffer
  int blocks_;           // the most of a kernel
};

}  // namespace fccl::core
