// BetweenRounds: the pause of a thread between two rounds over the operations that it waits for, and the loop over such rounds.
#pragma once

#include "base/result.h"
#include "waiting/advance.h"
#include "waiting/backoff.h"
#include "waiting/counter.h"

namespace fccl::core {

// Serves one wait of one thread: pauses, then yields, then sleeps for longer and longer, until an operation moves.
class BetweenRounds {
 public:
  explicit BetweenRounds(bool oversubscribed) : pauses_(oversubscribed ? 1 << 4 : 1 << 12) {}

  void has_moved() { idle_rounds_ = 0; }
  void wait() {
    if (++idle_rounds_ < pauses_) return spin_pause();
    const Clock::time_point now = Clock::now();
    if (idle_rounds_ == pauses_) since_ = now;
    kForPeers.rest(now - since_);
  }

 private:
  const int pauses_;
  int idle_rounds_ = 0;
  Clock::time_point since_{};
};

// Advances operations on this thread until they are done or fail.
template <class Operations>
Result<void> advance_until_done(Operations& operations, bool oversubscribed) {
  BetweenRounds between(oversubscribed);
  for (;;) {
    FCCL_TRY_ASSIGN(const Advance progress, operations.advance());
    if (progress == Advance::done) return {};
    progress == Advance::some ? between.has_moved() : between.wait();
  }
}

}  // namespace fccl::core
