// One collective on CPU memory, as torch sees it: the state behind wait(), result() and get_future().
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

#include "operation.h"

namespace fccl::torch {

// Describes a work's call.
struct Description {
  const char* title;  // name of the call, for messages and the profiler
  std::string group;  // its group and rank, for messages
  c10d::OpType type;
  uint64_t sequence;
  std::function<void()> abort;        // aborts the group that the work belongs to
  std::shared_ptr<const int> source;  // for a receive that is done: the sender's rank

  // For messages: names the call, its group and its rank.
  std::string attempt() const;
};
// Counts a call that is about to begin, and describes it.
using Describe = std::function<Description(const Operation&)>;

// Removes a work that has been waited for from torch's register of works whose tensors a graph may use, if torch keeps one.
void leave_register(c10d::Work& work);

// The caller owns it and, until it is done, the operation, too. Any thread may call it. After a failure wait() throws its
// cause, as often as it is called.
class Work final : public c10d::Work {
 public:
  Work(int rank, Description description, const std::vector<at::Tensor>& inputs, std::vector<at::Tensor> outputs);

  // Sets what a waiting thread does until the operation is done or the time is up. Called before other threads have the work;
  // without it they sleep.
  void serve_by(std::function<void(std::chrono::milliseconds)> serve) { serve_ = std::move(serve); }
  // Ends the operation for the waiting threads; `failure` is null after success. Called once, by the library's worker or the
  // issuing thread.
  void complete(std::exception_ptr failure);
  // Completes the future, if a caller has asked for it, and runs its callbacks. Called after complete; the first call does it.
  void complete_future();
  // Completes the work if no caller has asked for the future, so that it has no callbacks; otherwise returns false, and
  // complete_future must still be called.
  bool complete_without_future();

  std::string attempt() const { return description_.attempt(); }
  // Returns once the future is done and its callbacks have run, after a failure too.
  bool wait(std::chrono::milliseconds timeout) override;
  bool isCompleted() override;
  void abort() override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override;

 private:
  // Returns false if another thread is still in the callbacks at the deadline.
  bool await_future(const std::optional<std::chrono::steady_clock::time_point>& deadline);
  void settle(c10::ivalue::Future& future);

  const Description description_;
  const std::vector<at::Tensor> outputs_;
  std::function<void(std::chrono::milliseconds)> serve_;
  std::mutex future_mutex_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  bool future_claimed_ = false;  // a thread completes it or has done so
  bool callbacks_ended_ = false;
  std::condition_variable future_cv_;
};

}  // namespace fccl::torch
