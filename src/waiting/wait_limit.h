// WaitLimit: a deadline for a wait for other ranks, and a check that can cancel it.
#pragma once

#include <functional>
#include <utility>

#include "base/result.h"
#include "os/clock.h"

namespace fccl::core {

// Called regularly during a wait; an error ends the wait. An empty one is not called.
using CancelCheck = std::function<Result<void>()>;

// The limit of one wait. A deadline alone converts to it.
struct WaitLimit {
  WaitLimit(Deadline until, CancelCheck check = {}) : deadline(until), cancel_check(std::move(check)) {}

  // Returns the reason if the wait is cancelled.
  Result<void> check_cancelled() const { return cancel_check ? cancel_check() : Result<void>{}; }
  // Returns when a sleeping wait must check again.
  Deadline next_look() const;

  Deadline deadline;
  CancelCheck cancel_check;
};

}  // namespace fccl::core
