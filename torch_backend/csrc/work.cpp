// One collective on CPU memory as torch sees it: what wait(), result() and get_future() look at.
#include "work.h"

#include <ATen/core/jit_type.h>
#include <c10/util/Exception.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>

namespace fccl {

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
  future_settled_ = true;
  const auto future = future_;
  lock.unlock();
  if (future) settle(*future);
}

bool Work::complete_without_future() {
  const std::lock_guard lock(future_mutex_);
  if (future_) return false;
  future_settled_ = true;
  return true;
}

bool Work::wait(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  if (serve_ && !isCompleted()) serve_(timeout);
  std::unique_lock lock(mutex_);
  const auto done = [this] { return completed_; };
  if (timeout <= kNoTimeout) {
    cv_.wait(lock, done);
  } else if (!cv_.wait_until(lock, deadline, done)) {
    C10_THROW_ERROR(DistBackendError, c10::str(attempt(), ": not done within the ", timeout.count(),
                                               " ms given to wait(); it goes on, call wait() again or abort the group"));
  }
  const std::exception_ptr failure = exception_;
  lock.unlock();
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
    if (future_settled_) settle(*future_);
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

}  // namespace fccl
