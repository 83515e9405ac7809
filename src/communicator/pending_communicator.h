// PendingCommunicator: a communicator that is being made while its user continues.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "base/result.h"
#include "os/forks.h"
#include "waiting/wait_limit.h"

namespace fccl::core {

class Communicator;

// A handle that was asked for with config.blocking = 0 owns it. A thread of its own makes the communicator and stores it in the
// handle, before the state says so. Any thread may ask; one thread ends it. A failure is final. In a fork of the process that
// started it the making stops.
class PendingCommunicator {
 public:
  using Make = std::function<Result<std::unique_ptr<Communicator>>(const CancelCheck& cancel_check)>;

  // The caller keeps `into` alive longer than this.
  static Result<std::unique_ptr<PendingCommunicator>> start(Make make, std::unique_ptr<Communicator>& into);
  // Ends the making.
  ~PendingCommunicator();
  PendingCommunicator(const PendingCommunicator&) = delete;
  PendingCommunicator& operator=(const PendingCommunicator&) = delete;

  // Returns fcclInProgress, then fcclSuccess or the code of the error.
  fcclResult_t state() const { return state_.load(std::memory_order_acquire); }
  // Returns an error unless the communicator is made.
  Result<void> check() const;
  // Returns "" unless the making has failed.
  const char* failure_text() const;
  // Makes the thread give up, and returns when it has ended.
  void end();

 private:
  PendingCommunicator() = default;
  bool is_own() const { return forks_ == forks(); }
  bool has_failed() const { return state() != fcclSuccess && state() != fcclInProgress; }

  std::atomic<fcclResult_t> state_{fcclInProgress};
  std::atomic<bool> is_unwanted_{false};
  // Written before the state.
  Error error_{};
  std::string failure_text_;
  unsigned forks_ = forks();
  std::thread thread_;
};

}  // namespace fccl::core
