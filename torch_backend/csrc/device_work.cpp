// Makes streams wait for a call, and asks the device for its end.
#include "device_work.h"

#include <ATen/core/jit_type.h>
#include <c10/core/StreamGuard.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "accelerator.h"

namespace fccl::torch {
namespace {

using Clock = std::chrono::steady_clock;
using c10::ivalue::Future;

constexpr std::chrono::microseconds kFirstPause{10};
constexpr std::chrono::microseconds kLongestPause{1000};

}  // namespace

DeviceWork::DeviceWork(Description description, Place place, const std::vector<at::Tensor>& inputs,
                       std::vector<at::Tensor> outputs)
    : c10d::Work(place.communicator->membership().rank, description.type, description.title, inputs),
      description_(std::move(description)),
      place_(std::move(place)),
      outputs_(std::move(outputs)) {
  // The profiler measures the time of issuing; the device has a profiler of its own.
  if (recordFunctionEndCallback_) recordFunctionEndCallback_();
}

int DeviceWork::sourceRank() const {
  const bool receives = retrieveOpType() == c10d::OpType::RECV || retrieveOpType() == c10d::OpType::RECVANYSOURCE;
  return receives ? *description_.source : c10d::Work::sourceRank();
}

bool DeviceWork::wait(std::chrono::milliseconds timeout) {
  if (timeout > kNoTimeout || description_.type == c10d::OpType::BARRIER) wait_for_device(timeout);
  synchronize();
  leave_register(*this);
  if (const std::exception_ptr failure = exception()) std::rethrow_exception(failure);
  return true;
}

void DeviceWork::synchronize() {
  const c10::Stream current = current_stream(place_.launch->issuer.device());
  if (current != place_.stream) end().block(current);
  // The memory of the tensors returns to that stream.
  if (current == place_.launch->issuer) Launches::of_process().release(*place_.launch);
  if (!is_capturing(current)) Launches::of_process().sweep();
}

void DeviceWork::wait_for_device(std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  auto pause = kFirstPause;
  // The thread polls, since a thread that waits inside the driver cannot learn of a failure.
  while (!is_done(end()) && !exception()) {
    if (timeout > kNoTimeout && Clock::now() >= deadline) {
      C10_THROW_ERROR(DistBackendError, c10::str(description_.attempt(), ": not done within the ", timeout.count(),
                                                 " ms given to wait(); it goes on, call wait() again or abort the group"));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

bool DeviceWork::isCompleted() {
  if (succeeded_) return true;
  if (!is_done(end())) return false;
  succeeded_ = !exception();
  return true;
}

std::exception_ptr DeviceWork::exception() const {
  return succeeded_ ? nullptr : place_.communicator->failure(description_.attempt());
}

c10::intrusive_ptr<Future> DeviceWork::getFuture() {
  const std::lock_guard lock(parts_);
  if (!future_) {
    const c10::Device device = place_.launch->issuer.device();
    future_ = c10::make_intrusive<Future>(c10::ListType::create(c10::TensorType::get()), std::vector{device});
    // A thread that waits for the future waits for the work that the current stream holds now.
    const c10::StreamGuard guard(pooled_stream(device));
    end().block(guard.current_stream());
    future_->markCompleted(outputs_);
  }
  return future_;
}

}  // namespace fccl::torch
