// LandedPath: the way of collectives whose bytes go from GPU to GPU by landing slots, untouched by a processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/lane.h"
#include "device_calls/own_device.h"
#include "landing/steps.h"

namespace fccl::core {

struct CommunicatorState;
struct LaneQueue;
struct Settings;
struct Task;
enum class LandingKind : uint8_t;

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
  // meetings; where they may not use slots it does nothing. It tries the kinds of slots that FCCL_CUDA_PATH allows in turn. If
  // one rank cannot have slots of a kind, all do without, and none fails.
  Result<void> prepare(OwnLane& lane, LaneQueue& queue, uint64_t number);
  // Refuses a call if FCCL_CUDA_PATH insists on slots that the ranks cannot have. Equal on all ranks, as `serves` is, whatever
  // their buffers.
  Result<void> check(const Call& call) const;
  static bool serves(const OwnLane& lane, const Call& call) { return lane.device->landing() != nullptr && is_landed(call); }
  // `await_room` waits for room in the lane's queue.
  Result<void> run(const Issue& issue, const AwaitRoom& await_room);

 private:
  // Which ends of a copy have no address for the GPU.
  struct OnHost {
    bool from;
    bool to;
  };

  static bool is_landed(const Call& call) { return Steps::serve(call.signature) && call.signature.count > 0; }
  void give_to_worker(const Issue& issue, const Steps& steps, uint64_t number, uint64_t first_step);
  Result<void> enqueue(const Issue& issue, const Steps& steps, const AwaitRoom& await_room);
  Result<void> copy_on_this_thread(const Issue& issue, const Steps& steps, const AwaitRoom& await_room);
  Result<void> do_steps(const Issue& issue, const Steps& steps, uint64_t first_step);
  Result<void> copy_in(const Issue& issue, const Steps& steps, uint64_t step, uint64_t number);
  Result<void> copy_out(const Issue& issue, const Steps& steps, uint64_t step, uint64_t number);
  Result<void> copy_part(const Issue& issue, const Copy& copy, const OnHost& on_host);
  Result<void> copy_and_wait(const Issue& issue, const Copy& copy);
  Result<void> await_word(const Issue& issue, const DeviceWord& word, uint64_t value);
  Result<void> await_own_gpu(const Issue& issue);

  OwnDevice& gpu_;
  CommunicatorState& state_;
  std::string path_;
  std::vector<LandingKind> kinds_;  // those that are tried, equal on all ranks
  std::optional<Error> refusal_;
  size_t bytes_;         // of a rank's slots
  size_t buffer_bytes_;  // of the lane's buffer
};

}  // namespace fccl::core
