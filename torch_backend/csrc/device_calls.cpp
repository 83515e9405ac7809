// Puts operations on streams, and ends groups that were dropped.
#include "device_calls.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <string>

#include "accelerator.h"
#include "errors.h"
#include "launches.h"

namespace fccl::torch {
namespace {

// Holds the calls of groups that were dropped.
struct Left {
  std::mutex mutex;
  std::vector<std::shared_ptr<DeviceCalls>> calls;

  static Left& of_process() {
    static auto* const left = new Left;
    return *left;
  }
};

std::vector<at::Tensor> tensors_of(const Operation& operation) {
  std::vector<at::Tensor> tensors = operation.inputs;
  for (auto* more : {&operation.outputs, &operation.staging}) tensors.insert(tensors.end(), more->begin(), more->end());
  return tensors;
}

}  // namespace

void DeviceCalls::connect(c10::Device device) {
  const std::lock_guard turn(communicator_->turn());
  check_device(device, "fccl:connect");
  const c10::DeviceGuard on_device(device);
  (void)open("fccl:connect", current_stream(device));
}

fcclComm_t DeviceCalls::open(const char* title, const c10::Stream& current) {
  if (communicator_->is_made()) return communicator_->open(title);
  device_ = current.device();
  end_those_left();
  // The library uses the thread's CUDA context, and a thread that has only chosen a device may not have one yet; recording an
  // event makes it.
  if (!fork_) fork_.emplace(current.device_type());
  fork_->record(current);
  return communicator_->open(title);
}

void DeviceCalls::adopt(fcclComm_t comm, c10::Device device) {
  device_ = device;
  communicator_->adopt(comm, "");
}

c10::intrusive_ptr<c10d::Work> DeviceCalls::run(const Operation& operation, c10::Device device,
                                                std::chrono::milliseconds timeout, const Describe& describe) {
  const std::lock_guard turn(communicator_->turn());
  check_device(device, operation.title);
  const c10::DeviceGuard on_device(device);
  const c10::Stream current = current_stream(device);
  if (is_capturing(current)) throw_not_implemented(c10::str(operation.title, " during the capture of a graph"));
  const fcclComm_t comm = open(operation.title, current);
  communicator_->set_deadline(timeout, operation.title);
  Launches::of_process().sweep();

  const Description description = describe(operation);
  DeviceWork::Place place = may_run_apart(operation) ? run_apart(operation, comm, current, description.attempt())
                                                     : run_on_stream(operation, comm, current, description.attempt());
  return c10::make_intrusive<DeviceWork>(description, std::move(place), operation.inputs, operation.outputs);
}

// Copies need a stream of torch's. What is outstanding there comes before the next asynchronous operation.
bool DeviceCalls::may_run_apart(const Operation& operation) const {
  return operation.async && operation.steps.size() == 1 && (!on_side_ || is_done(on_side_->end));
}

// The library runs the call on a queue of its own, and records its end there: no stream of torch's stands between.
DeviceWork::Place DeviceCalls::run_apart(const Operation& operation, fcclComm_t comm, const c10::Stream& current,
                                         const std::string& attempt) {
  const std::shared_ptr<Launch> launch = Launches::of_process().prepare(current);
  check(fcclCommSetEndEvent(comm, launch->end.eventId()), attempt);
  const std::exception_ptr failure = issue(operation, comm, current, attempt);
  Launches::of_process().keep(launch, this, tensors_of(operation));
  check(fcclCommSetEndEvent(comm, nullptr), attempt);
  if (failure) {
    // What was issued before the failure still uses the tensors.
    launch->end.block(current);
    std::rethrow_exception(failure);
  }
  apart_ = launch;
  return {communicator_, std::nullopt, launch};
}

DeviceWork::Place DeviceCalls::run_on_stream(const Operation& operation, fcclComm_t comm, const c10::Stream& current,
                                             const std::string& attempt) {
  const bool is_barrier = operation.type == c10d::OpType::BARRIER;
  const c10::Stream stream = operation.async ? side_stream() : current;
  if (operation.async) follow(stream, current);
  // A caller that has passed a barrier expects its earlier operations to be done.
  if (is_barrier && on_side_) on_side_->end.block(stream);
  if ((is_barrier || operation.async) && apart_) apart_->end.block(stream);
  if (std::find(used_.begin(), used_.end(), stream) == used_.end()) used_.push_back(stream);
  if (const std::exception_ptr failure = issue(operation, comm, stream, attempt)) {
    // Steps issued before the failure still use the tensors.
    if (stream != current) follow(current, stream);
    std::rethrow_exception(failure);
  }
  // Tensors must be kept only for a call that runs next to the caller's stream.
  auto kept = operation.async ? tensors_of(operation) : std::vector<at::Tensor>{};
  auto launch = Launches::of_process().add(stream, current, std::move(kept));
  if (operation.async) on_side_ = launch;
  return {communicator_, stream, std::move(launch)};
}

void DeviceCalls::follow(const c10::Stream& stream, const c10::Stream& first) {
  if (!fork_) fork_.emplace(stream.device_type());
  fork_->record(first);
  fork_->block(stream);
}

std::exception_ptr DeviceCalls::issue(const Operation& operation, fcclComm_t comm, const c10::Stream& stream,
                                      const std::string& attempt) {
  const c10::StreamGuard guard(stream);
  try {
    for (const Step& step : operation.steps) {
      if (const fcclResult_t result = step(comm, handle_of(stream)); result != fcclSuccess) check(result, attempt);
    }
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

void DeviceCalls::check_device(c10::Device device, const char* title) const {
  if (!device_ || *device_ == device) return;
  check(
      fcclInvalidArgument, communicator_->attempt_of(title),
      c10::str("the tensor is on ", device, ", but the group's communicator is on ", *device_,
               ": a rank uses one device in a group; choose it by device_id or by torch.cuda.set_device before the first call")
          .c_str());
}

c10::Stream DeviceCalls::side_stream() {
  if (!side_) side_ = pooled_stream(*device_);
  return *side_;
}

void DeviceCalls::abort() {
  communicator_->revoke();
  if (communicator_->is_joining()) return;
  // The turn makes sure that every thread inside a call, or about to enter one, has returned before the handle ends.
  const std::lock_guard turn(communicator_->turn());
  const c10::OptionalDeviceGuard guard(device_);
  communicator_->end("fccl:abort");
}

void DeviceCalls::shut_down() {
  const std::lock_guard turn(communicator_->turn());
  if (!device_) return communicator_->end("fccl:shutdown");  // makes no device call
  const c10::OptionalDeviceGuard guard(device_);
  communicator_->finish("fccl:shutdown");
  communicator_->end("fccl:shutdown");
  Launches::of_process().sweep();
  end_those_left();
}

void DeviceCalls::leave(std::shared_ptr<DeviceCalls> calls) {
  if (!calls->device_) return;
  auto& left = Left::of_process();
  const std::lock_guard lock(left.mutex);
  left.calls.push_back(std::move(calls));
}

bool DeviceCalls::is_through() {
  if (ends_.empty()) {
    if (apart_) ends_.push_back(apart_);
    for (const c10::Stream& stream : used_) ends_.push_back(Launches::of_process().add(stream, stream, {}));
  }
  return std::all_of(ends_.begin(), ends_.end(), [](const auto& launch) { return is_done(launch->end); });
}

void DeviceCalls::end_those_left() {
  auto& left = Left::of_process();
  std::unique_lock lock(left.mutex);
  std::vector<std::shared_ptr<DeviceCalls>> calls;
  calls.swap(left.calls);
  // Destructors of groups wait for this lock, so it must not be held in calls of the device.
  lock.unlock();
  std::erase_if(calls, [](const std::shared_ptr<DeviceCalls>& each) {
    if (!each->is_through()) return false;
    const c10::OptionalDeviceGuard guard(each->device_);
    each->communicator_->end("fccl:shutdown");
    return true;
  });
  lock.lock();
  left.calls.insert(left.calls.end(), calls.begin(), calls.end());
}

}  // namespace fccl::torch
