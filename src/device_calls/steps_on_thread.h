// StepsOnThread: the steps of a call by landing slots, done by the thread that issues the call, for a buffer in host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "device/lane.h"
#include "device_calls/own_device.h"
#include "landing/reduce_steps.h"
#include "landing/steps.h"

namespace fccl::core {

struct CommunicatorState;
struct Task;

// A driver's copy between two host places would keep the thread inside the driver. So the thread writes the words that the GPU
// would, and copies itself what lies on the host. Lives on the issuing thread during the call, whose queue is idle.
class StepsOnThread {
 public:
  // The call, the ends of it that lie on the host, and the bytes of the lane's buffer.
  struct Issued {
    const Task& task;
    OwnDevice::HostEnds on_host;
    size_t buffer_bytes;
  };

  StepsOnThread(OwnDevice& gpu, CommunicatorState& state, DeviceLane& lane, const Issued& issued)
      : gpu_(gpu),
        state_(state),
        lane_(lane),
        task_(issued.task),
        buffer_bytes_(issued.buffer_bytes),
        on_host_(issued.on_host) {}
  StepsOnThread(const StepsOnThread&) = delete;
  StepsOnThread& operator=(const StepsOnThread&) = delete;

  // Returns once the GPU has come to the call; this rank's factor is in the lane's words then. `scalar`: null if the call has
  // none.
  Result<void> await_call(const void* scalar);
  Result<void> run(const Steps& steps, uint64_t first_step);
  // `blocks`: the most of a kernel.
  Result<void> run(const ReduceSteps& steps, uint64_t first_step, int blocks);
  // Bytes that this thread has copied.
  size_t copied() const { return copied_; }

 private:
  // Which ends of a copy have no address for the GPU.
  struct OnHost {
    bool from;
    bool to;
  };
  // Does something for the step of a call, which has this number on the lane.
  using DoStep = std::function<Result<void>(uint64_t step, uint64_t number)>;

  Result<void> run(uint64_t count, uint64_t first_step, const DoStep& fill, const DoStep& empty);
  Result<void> put_gathered(const Steps& steps, uint64_t step, uint64_t number);
  Result<void> take_gathered(const Steps& steps, uint64_t step, uint64_t number);
  Result<void> put_for_peers(const ReduceSteps& steps, uint64_t step, uint64_t number);
  Result<void> add(const ReduceSteps& steps, uint64_t step, uint64_t number, int blocks);
  Result<void> take_results(const ReduceSteps& steps, uint64_t step, uint64_t number);
  Result<void> copy_part(const Copy& copy, const OnHost& on_host);
  Result<void> copy_and_wait(const Copy& copy);
  void copy_here(void* to, const void* from, size_t bytes);
  Result<void> await_word(const DeviceWord& word, uint64_t value);
  Result<void> await_own_gpu();

  OwnDevice& gpu_;
  CommunicatorState& state_;
  DeviceLane& lane_;
  const Task& task_;
  size_t buffer_bytes_;
  OwnDevice::HostEnds on_host_;
  size_t copied_ = 0;
};

}  // namespace fccl::core
