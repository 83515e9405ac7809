// InCall: says that a thread is inside a call of a communicator.
#pragma once

#include <atomic>

#include "os/thread_fence.h"

namespace fccl::core {

// Lives on the one thread that issues calls, so that a thread which ends the communicator can wait for it. The calls of a split
// or a growth lie within one, and so does a GPU's call that runs in host memory.
class InCall {
 public:
  explicit InCall(std::atomic<bool>& flag) : flag_(flag), is_outermost_(!flag.load(std::memory_order_relaxed)) {
    flag_.store(true, std::memory_order_relaxed);
    // The thread that ends the communicator fences this thread, too: it sees the flag, or this call sees that it must not
    // begin.
    fence_compiler();
  }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;
  ~InCall() {
    if (is_outermost_) flag_.store(false, std::memory_order_release);
  }
  bool is_outermost() const { return is_outermost_; }

 private:
  std::atomic<bool>& flag_;
  bool is_outermost_;
};

}  // namespace fccl::core
