// LandedPath: the way of collectives whose bytes go from GPU to GPU by landing slots in host memory, untouched by a processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/lane.h"
#include "device/steps.h"
#include "device_calls/own_device.h"

namespace fccl::core {

class LandingSlots;
struct CommunicatorState;
struct LandingPlace;
struct LaneQueue;
struct Settings;
struct Task;

// A communicator's DevicePath owns it. The thread that issues calls uses it.
class LandedPath {
 public:
  // A call that is being issued.
  struct Issue {
    OwnLane& lane;
    LaneQueue& queue;
    const Task& task;
    OwnDevice::HostEnds on_host;
    Queue user;
  };

  LandedPath(OwnDevice& gpu, const Settings& settings, CommunicatorState& state);
  LandedPath(const LandedPath&) = delete;
  LandedPath& operator=(const LandedPath&) = delete;

  // Gives a lane its slots, if every rank can have them and read those of all others. All ranks call it between the same two
  // meetings; where they may not use slots it does nothing. If one rank cannot have slots, all do without, and none fails.
  Result<void> prepare(OwnLane& lane, LaneQueue& queue, uint64_t number);
  // Equal on all ranks, whatever their buffers.
  static bool serves(const OwnLane& lane, const Call& call) {
    return lane.device->landing() != nullptr && Steps::serve(call.signature) && call.signature.count > 0;
  }
  // `await_room` waits for room in the lane's queue.
  Result<void> run(const Issue& issue, const AwaitRoom& await_room);

 private:
  Result<std::unique_ptr<LandingSlots>> make(const OwnLane& lane) const;
  Result<void> reach_all(LandingSlots& landing, const std::vector<LandingPlace>& places) const;
  Result<void> exchange(LaneQueue& queue, uint64_t number, const void* mine, void* all, size_t bytes);
  void give_to_worker(const Issue& issue, const Steps& steps, uint64_t number, uint64_t first_step);
  Result<void> enqueue(const Issue& issue, const Steps& steps, const AwaitRoom& await_room);
  Result<void> copy_on_this_thread(const Issue& issue, const Steps& steps, const AwaitRoom& await_room);
  Result<void> do_steps(const Issue& issue, const Steps& steps, uint64_t first_step);
  Result<void> copy_in(const Issue& issue, const Steps& steps, uint64_t step, uint64_t number);
  Result<void> copy_out(const Issue& issue, const Steps& steps, uint64_t step, uint64_t number);
  Result<void> await_word(const Issue& issue, const DeviceWord& word, uint64_t value);
  Result<void> await_own_gpu(const Issue& issue);

  OwnDevice& gpu_;
  CommunicatorState& state_;
  bool is_allowed_;  // equal on all ranks
  size_t bytes_;     // of a rank's slots
};

}  // namespace fccl::core
