// Runs a group's operations on a device: on the caller's stream, or next to it.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "communicator.h"
#include "device_work.h"
#include "launches.h"
#include "operation.h"

namespace fccl::torch {

// The group shares it. If the group is dropped, a list keeps it, and a later creation or end of a group ends it: ending a
// communicator calls the device, which a destructor must not do. It is bound to the first device that it sees. Threads that
// issue calls may call it, one operation at a time; only these threads call the device.
class DeviceCalls {
 public:
  explicit DeviceCalls(std::shared_ptr<Communicator> communicator) : communicator_(std::move(communicator)) {}

  Communicator& communicator() { return *communicator_; }
  // Binds it to the device and makes the communicator at once.
  void connect(c10::Device device);
  // Takes a communicator that a split has made for this device.
  void adopt(fcclComm_t comm, c10::Device device);
  // Returns the device that it is bound to. Needs the communicator's turn.
  std::optional<c10::Device> device() const { return device_; }
  // Puts the operation on the current stream or, if it is asynchronous, beside it and behind what it holds now; asynchronous
  // operations come one after the other. Returns the work that stands for it. It never waits for the device.
  c10::intrusive_ptr<c10d::Work> run(const Operation& operation, c10::Device device, std::chrono::milliseconds timeout,
                                     const Describe& describe);
  void abort();
  // Waits until the device is done with the group's calls, and leaves.
  void shut_down();
  // The destructor of a group calls it: a later creation or end of a group ends the calls, once the device is done.
  static void leave(std::shared_ptr<DeviceCalls> calls);

 private:
  void check_device(c10::Device device, const char* title) const;
  // Binds the group to the stream's device at the first call, which all ranks make.
  fcclComm_t open(const char* title, const c10::Stream& current);
  bool may_run_apart(const Operation& operation) const;
  DeviceWork::Place run_apart(const Operation& operation, fcclComm_t comm, const c10::Stream& current,
                              const std::string& attempt);
  DeviceWork::Place run_on_stream(const Operation& operation, fcclComm_t comm, const c10::Stream& current,
                                  const std::string& attempt);
  c10::Stream side_stream();
  // Makes later work on `stream` follow the work that is on `first` now.
  void follow(const c10::Stream& stream, const c10::Stream& first);
  static std::exception_ptr issue(const Operation& operation, fcclComm_t comm, const c10::Stream& stream,
                                  const std::string& attempt);
  // True if the device is done with all work that the streams of the group's calls had when this was first called.
  bool is_through();
  static void end_those_left();

  const std::shared_ptr<Communicator> communicator_;
  // The communicator's turn guards them.
  std::optional<c10::Device> device_;
  std::optional<c10::Stream> side_;            // stream of asynchronous operations with several steps
  std::shared_ptr<Launch> on_side_;            // the last one there
  std::shared_ptr<Launch> apart_;              // the last call that no stream of torch's runs
  std::optional<c10::Event> fork_;             // recorded again each time
  std::vector<c10::Stream> used_;              // streams that calls were put on
  std::vector<std::shared_ptr<Launch>> ends_;  // their ends, recorded when the group was left
};

}  // namespace fccl::torch
