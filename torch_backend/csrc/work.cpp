// Completes works and futures, and serves waiting threads.
#include "work.h"

#include <ATen/core/jit_type.h>
#include <c10/util/Exception.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>

namespace fccl::torch {
namespace {

// Set while this thread runs the callbacks of a work.
thread_local bool in_callback = false;

}  // namespace

void leave_register(c10d::Work& work) {
  if (!c10d::allow_inflight_collective_as_graph_input()) return;
  c10d::unregister_work(c10::intrusive_ptr<c10d::Work>::unsafe_reclaim_from_nonowning(&work));
}

std::string Description::attempt() const { return c10::str(title, " of ", group, ", call ", sequence); }

Work::Work(int rank, Description description, const std::vector<at::Tensor>& inputs, std::vector<at::Tensor> outputs)
    : c10d::Work(rank, description.type, description.title, inputs),
      description_(std::move(description)),
      outputs_(std::move(outputs)) {}

void Work::complete(std::exception_ptr failure) { finish(std::move(failure)); }

void Work::complete_future() {
  std::unique_lock lock(future_mutex_);
  if (std::exchange(future_claimed_, true)) return;
  const auto future = future_;
  lock.unlock();
  // The destructor releases waiting threads even if a callback throws.
  struct End {
    explicit End(Work* ended) : work(ended), before(std::exchange(in_callback, true)) {}
    ~End() {
      in_callback = before;
      const std::lock_guard ending(work->future_mutex_);
      work->callbacks_ended_ = true;
      work->future_cv_.notify_all();
    }
    Work* work;
    bool before;
  };
  const End end(this);
  if (future) settle(*future);
}

bool Work::complete_without_future() {
  const std::lock_guard lock(future_mutex_);
  if (future_) return false;
  future_claimed_ = true;
  callbacks_ended_ = true;
  return true;
}

// The waiting thread completes the future itself unless another thread has begun to, so that a wait in a callback does not need
// a thread that is busy with callbacks.
bool Work::await_future(const std::optional<std::chrono::steady_clock::time_point>& deadline) {
  complete_future();
  std::unique_lock lock(future_mutex_);
  const auto future = future_;
  if (in_callback && future) {
    // The callbacks of two works may wait for each other's work: each gets the value, and neither waits for callbacks.
    lock.unlock();
    future->wait();
    return true;
  }
  const auto ended = [this] { return callbacks_ended_; };
  if (deadline) return future_cv_.wait_until(lock, *deadline, ended);
  future_cv_.wait(lock, ended);
  return true;
}

bool Work::isCompleted() {
  if (!c10d::Work::isCompleted()) return false;
  const std::lock_guard lock(future_mutex_);
  return !future_ || future_->completed();
}

bool Work::wait(std::chrono::milliseconds timeout) {
  std::optional<std::chrono::steady_clock::time_point> deadline;
  if (timeout > kNoTimeout) deadline = std::chrono::steady_clock::now() + timeout;
  if (serve_ && !c10d::Work::isCompleted()) serve_(timeout);
  std::unique_lock lock(mutex_);
  const auto done = [this] { return completed_; };
  bool in_time = true;
  if (deadline) {
    in_time = cv_.wait_until(lock, *deadline, done);
  } else {
    cv_.wait(lock, done);
  }
  const std::exception_ptr failure = exception_;
  lock.unlock();
  if (!in_time || !await_future(deadline)) {
    C10_THROW_ERROR(DistBackendError, c10::str(attempt(), ": timed out, not done within the ", timeout.count(),
                                               " ms given to wait(); it goes on, call wait() again or abort the group"));
  }
  leave_register(*this);
  if (failure) std::rethrow_exception(failure);
  return true;
}

void Work::abort() { description_.abort(); }

int Work::sourceRank() const {
  const bool receives = retrieveOpType() == c10d::OpType::RECV || retrieveOpType() == c10d::OpType::RECVANYSOURCE;
  return receives ? *description_.source : c10d::Work::sourceRank();
}

std::vector<at::Tensor> Work::result() { return outputs_; }

c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture() {
  std::unique_lock lock(future_mutex_);
  if (!future_) {
    future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    if (future_claimed_) settle(*future_);
  }
  return future_;
}

uint64_t Work::getSequencenumber() const { return description_.sequence; }

void Work::settle(c10::ivalue::Future& future) {
  if (const std::exception_ptr failure = exception()) {
    future.setError(failure);
  } else {
    future.markCompleted(outputs_);
  }
}

}  // namespace fccl::torch
