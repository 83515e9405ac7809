// InCall: says that a thread is inside a call of a communicator.
#pragma once

#include <atomic>

namespace fccl {

// For whoever ends the communicator to wait for, while it lives, on the one thread that issues calls. The calls of a split or a
// growth are within one, and so is what runs in host memory for a GPU.
class InCall {
 public:
  explicit InCall(std::atomic<bool>& flag) : flag_(flag), is_outermost_(!flag.load(std::memory_order_relaxed)) {
    flag_.store(true, std::memory_order_relaxed);
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

}  // namespace fccl
