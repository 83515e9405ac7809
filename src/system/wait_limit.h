// WaitLimit: how long whoever waits for other ranks may wait, and what tells it to stop before.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>

#include "base/result.h"
#include "system/clock.h"
#include "system/failure_timing.h"

namespace fccl {

// Asked now and then while somebody waits; an error ends the wait. Empty: nothing to ask.
using CancelCheck = std::function<Result<void>()>;

// A value of whoever waits. A deadline alone is one, too.
struct WaitLimit {
  WaitLimit(Deadline until, CancelCheck check = {}) : deadline(until), cancel_check(std::move(check)) {}

  // Why the wait is cancelled, if it is.
  Result<void> check_cancelled() const { return cancel_check ? cancel_check() : Result<void>{}; }
  // Until when to sleep before the next question.
  Deadline next_look() const { return {std::min(deadline.at, Deadline::after(kLookInterval).at)}; }

  Deadline deadline;
  CancelCheck cancel_check;
};

}  // namespace fccl
