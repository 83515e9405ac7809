// One collective on CPU memory as torch sees it: what wait(), result() and get_future() look at.
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

namespace fccl {

// What a work says of its call.
struct Description {
  const char* title;  // which call, for messages and the profiler
  std::string group;  // of which group and rank, for messages
  c10d::OpType type;
  uint64_t sequence;
  std::function<void()> abort;        // aborts the group that the work belongs to
  std::shared_ptr<const int> source;  // of a receive that is done: who has sent

  // For messages: which call of which group and rank.
  std::string attempt() const;
};
// Counts a call that is about to begin, and describes it.
using Describe = std::function<Description(const Operation&)>;

// Takes a work that has been waited for out of torch's register of those whose tensors a graph may use, where torch keeps it.
void leave_register(c10d::Work& work);

// Owned by the caller and, until it is done, by the operation. Any thread may call it. After a failure wait() throws its cause,
// as often as it is called.
class Work final : public c10d::Work {
 public:
  Work(int rank, Description description, const std::vector<at::Tensor>& inputs, std::vector<at::Tensor> outputs);

  // What whoever waits does until the operation is done or the time is up. Before others have the work; without it they sleep.
  void serve_by(std::function<void(std::chrono::milliseconds)> serve) { serve_ = std::move(serve); }
  // Ends the operation for those who wait; `failure` is null after success. Called once, by the library's worker or the issuing
  // thread.
  void complete(std::exception_ptr failure);
  // Completes the future, if anybody has asked for it, and runs its callbacks. After complete; the first call does it.
  void complete_future();
  // The same if nobody has asked for it yet, so that there are no callbacks; else false, and complete_future is still to be
  // called.
  bool complete_without_future();

  std::string attempt() const { return description_.attempt(); }
  // Ends when the future is done and its callbacks have run, after a failure too.
  bool wait(std::chrono::milliseconds timeout) override;
  bool isCompleted() override;
  void abort() override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override;

 private:
  // False if another thread is still in the callbacks at the deadline.
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

}  // namespace fccl
