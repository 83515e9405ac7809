// Runs a group's operations on a device: on the caller's stream, or on a stream beside it.
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

namespace fccl {

// Shared by the group and, when that is dropped, by the list of those that a later creation or end of a group ends: ending a
// communicator calls the device, which a destructor must not do. Bound to the first device that it sees. Threads that issue
// calls may call it, one operation at a time; the device is called on these threads alone.
class DeviceCalls {
 public:
  explicit DeviceCalls(std::shared_ptr<Communicator> communicator) : communicator_(std::move(communicator)) {}

  Communicator& communicator() { return *communicator_; }
  // Binds it to the device and makes the communicator now.
  void connect(c10::Device device);
  // As a split has made it for this device.
  void adopt(fcclComm_t comm, c10::Device device);
  // What it is bound to. Under the communicator's turn.
  std::optional<c10::Device> device() const { return device_; }
  // Puts the operation on the current stream or, if it is asynchronous, on the group's own, which then waits for the current
  // one; gives the work that stands for it. Never waits for the device.
  c10::intrusive_ptr<c10d::Work> run(const Operation& operation, c10::Device device, std::chrono::milliseconds timeout,
                                     const Describe& describe);
  void abort();
  // Waits until the device is done with the group's calls, and leaves.
  void shut_down();
  // What the destructor of a group calls: gives it to a later creation or end of a group, once the device is done.
  static void leave(std::shared_ptr<DeviceCalls> calls);

 private:
  void check_device(c10::Device device, const char* title) const;
  // Binds the group to the stream's device if this is the first call, which all ranks make.
  fcclComm_t open(const char* title, const c10::Stream& current);
  c10::Stream side_stream();
  // What is issued on `stream` from now on comes after what is on `first` now.
  void follow(const c10::Stream& stream, const c10::Stream& first);
  static std::exception_ptr issue(const Operation& operation, fcclComm_t comm, const c10::Stream& stream,
                                  const std::string& attempt);
  // Whether the device is done with all that was on the streams of the group's calls when this was asked first.
  bool is_through();
  static void end_those_left();

  const std::shared_ptr<Communicator> communicator_;
  // Guarded by the communicator's turn.
  std::optional<c10::Device> device_;
  std::optional<c10::Stream> side_;            // of asynchronous operations
  std::optional<c10::Event> fork_;             // recorded again each time
  std::vector<c10::Stream> used_;              // that calls were put on
  std::vector<std::shared_ptr<Launch>> ends_;  // of those, when the group was left
};

}  // namespace fccl
