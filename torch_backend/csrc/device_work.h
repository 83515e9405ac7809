// One collective on a device as torch sees it: its order among streams, and what is known of its end.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Stream.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "communicator.h"
#include "launches.h"
#include "work.h"

namespace fccl {

// Made when its call has been put on a stream. Owned by the caller alone: dropping it changes nothing for the call, and calls
// nothing of the device. Any thread may call it, and whoever does calls the device. After a failure wait() lets the current
// stream wait first, since what has been issued still uses its tensors, and then throws the cause.
class DeviceWork final : public c10d::Work {
 public:
  // Where the call runs, and its launch, whose end was recorded when it was issued: whoever asks later, from any thread, puts
  // nothing on any stream.
  struct Place {
    std::shared_ptr<Communicator> communicator;
    c10::Stream stream;
    std::shared_ptr<Launch> launch;
  };

  DeviceWork(Description description, Place place, const std::vector<at::Tensor>& inputs, std::vector<at::Tensor> outputs);

  // Without a limit only the current stream waits, unless it is a barrier's; with one the calling thread does.
  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override;
  bool isCompleted() override;
  bool isSuccess() const override { return !exception(); }
  std::exception_ptr exception() const override;
  void abort() override { description_.abort(); }
  std::vector<at::Tensor> result() override { return outputs_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  // Known since the receive was issued, which waited for its sender.
  int sourceRank() const override;
  uint64_t getSequencenumber() const override { return description_.sequence; }

 private:
  const c10::Event& end() const { return place_.launch->end; }
  void wait_for_the_device(std::chrono::milliseconds timeout);

  const Description description_;
  const Place place_;
  const std::vector<at::Tensor> outputs_;
  std::atomic<bool> succeeded_ = false;  // the device was done with it while nothing had failed
  std::mutex parts_;                     // guards the next, of a blocking call made when asked for
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace fccl
