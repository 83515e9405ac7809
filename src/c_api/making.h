// Making: a communicator that is being made while its user goes on.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "base/result.h"
#include "communicator/communicator.h"
#include "system/forks.h"
#include "system/wait_limit.h"

namespace fccl {

// Owned by a handle that was asked for with config.blocking = 0. A thread of its own makes the communicator and puts it where
// the handle keeps it, before the state says so. Any thread may ask; one ends it. A failure stays. In a fork of the process
// that started it nothing makes the communicator any more.
class Making {
 public:
  using Make = std::function<Result<std::unique_ptr<Communicator>>(const CancelCheck& cancel_check)>;

  // `into` must outlive it.
  static Result<std::unique_ptr<Making>> start(Make make, std::unique_ptr<Communicator>& into);
  // Ends it.
  ~Making();
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

  // fcclInProgress, then fcclSuccess or the code of the error.
  fcclResult_t state() const { return state_.load(std::memory_order_acquire); }
  // Whether the communicator is there, or why not.
  Result<void> check() const;
  // "" unless it has failed.
  const char* failure_text() const;
  // Returns when its thread is out, which it makes give up.
  void end();

 private:
  Making() = default;
  bool is_own() const { return forks_ == forks(); }
  bool has_failed() const { return state() != fcclSuccess && state() != fcclInProgress; }

  std::atomic<fcclResult_t> state_{fcclInProgress};
  std::atomic<bool> is_unwanted_{false};
  Error error_{};  // written before the state
  unsigned forks_ = forks();
  std::thread thread_;
};

}  // namespace fccl
