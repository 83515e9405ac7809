// What calls on a device leave behind until it is done with them: the tensors that they use, and the events that tell.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace fccl {

// One call, shared by its work and by the launches of the process, which alone end it: an event's end is a call of CUDA. The
// event may be asked and waited for by any thread.
struct Launch {
  c10::Event end;
  c10::Stream issuer;               // the stream that was current where the call was issued
  std::vector<at::Tensor> tensors;  // guarded by the mutex of Launches
};

// Of all groups: a group that is dropped leaves its launches here, and no destructor calls CUDA or waits for it. One per
// process, never destroyed. Threads that issue calls on devices call it, and no others.
class Launches {
 public:
  static Launches& of_process();
  // What is on `stream` now, with the tensors that it uses: kept until the device is done with it.
  std::shared_ptr<Launch> add(const c10::Stream& stream, const c10::Stream& issuer, std::vector<at::Tensor> tensors);
  // Lets go of the tensors at once: whoever uses their memory again comes after the launch.
  void release(Launch& launch);
  // Lets go of what the device is done with.
  void sweep();

 private:
  c10::Event take_event(c10::Device device);

  std::mutex mutex_;
  std::unordered_map<c10::Stream, std::deque<std::shared_ptr<Launch>>> outstanding_;
  std::vector<std::shared_ptr<Launch>> done_;  // some of which works still refer to
  std::vector<c10::Event> spare_;              // to be recorded again
};

}  // namespace fccl
