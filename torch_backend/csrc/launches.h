// Keeps, until the device is done with a call, the tensors that it uses and the event that tells its end.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace fccl::torch {

// One call, which its work and the process's Launches share. Only Launches end it: destroying an event is a CUDA call. Any
// thread may query the event and wait for it.
struct Launch {
  c10::Event end;
  c10::Stream issuer;                    // the stream that was current where the call was issued
  std::vector<at::Tensor> tensors = {};  // guarded by the mutex of Launches
};

// Serves all groups: a dropped group leaves its launches here, and no destructor calls CUDA or waits for it. A process has one,
// which is never destroyed. Only threads that issue calls on devices may call it.
class Launches {
 public:
  static Launches& of_process();
  // Records the work that `stream` holds now, with the tensors that it uses: both are kept until the device is done with it.
  std::shared_ptr<Launch> add(const c10::Stream& stream, const c10::Stream& issuer, std::vector<at::Tensor> tensors);
  // Makes a launch whose end the library records. Once it has, keep() does the same for it; calls of one `group` come one after
  // the other.
  std::shared_ptr<Launch> prepare(const c10::Stream& issuer);
  void keep(const std::shared_ptr<Launch>& launch, const void* group, std::vector<at::Tensor> tensors);
  // Releases the tensors at once: later users of their memory come after the launch.
  void release(Launch& launch);
  // Releases the launches that the device is done with.
  void sweep();

 private:
  using Queue = std::deque<std::shared_ptr<Launch>>;

  c10::Event take_event(c10::Device device);
  void sweep(Queue& queue, std::vector<std::vector<at::Tensor>>& released);

  std::mutex mutex_;
  std::unordered_map<c10::Stream, Queue> on_streams_;
  std::unordered_map<const void*, Queue> of_groups_;
  std::vector<std::shared_ptr<Launch>> done_;  // some of which works still refer to
  std::vector<c10::Event> spare_;              // to be recorded again
};

}  // namespace fccl::torch
