// One collective on a device, as torch sees it: its order among streams, and its end.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Stream.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "communicator.h"
#include "launches.h"
#include "work.h"

namespace fccl::torch {

// Made once its call is on a stream. Only the caller owns it: dropping it does not affect the call, and makes no device call.
// Any thread may call it, and the calls reach the device on that thread. After a failure wait() first makes the current stream
// wait, since issued steps still use the tensors, and then throws the cause.
class DeviceWork final : public c10d::Work {
 public:
  // The stream of the call, none if it runs on the library's queue alone; and its launch, whose end was recorded when the call
  // was issued: a later question, from any thread, puts nothing on a stream.
  struct Place {
    std::shared_ptr<Communicator> communicator;
    std::optional<c10::Stream> stream;
    std::shared_ptr<Launch> launch;
  };

  DeviceWork(Description description, Place place, const std::vector<at::Tensor>& inputs, std::vector<at::Tensor> outputs);

  // Without a limit only the current stream waits, except for a barrier; with a limit the calling thread waits.
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
  void wait_for_device(std::chrono::milliseconds timeout);

  const Description description_;
  const Place place_;
  const std::vector<at::Tensor> outputs_;
  std::atomic<bool> succeeded_ = false;  // the device finished the call before any failure
  std::mutex parts_;                     // guards the future, which is made on demand
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace fccl::torch
