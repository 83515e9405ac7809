// BetweenRounds: what a thread does between two rounds over the operations that it waits for.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "system/clock.h"
#include "system/counter.h"

namespace fccl {

// Of one thread and one wait: pauses, then yields, then sleeps for longer and longer, until something has moved.
class BetweenRounds {
 public:
  explicit BetweenRounds(bool oversubscribed) : pauses_(oversubscribed ? 1 << 4 : 1 << 12) {}

  void has_moved() { idle_rounds_ = 0; }
  void wait() {
    if (++idle_rounds_ < pauses_) return pause();
    const Clock::time_point now = Clock::now();
    if (idle_rounds_ == pauses_) since_ = now;
    if (now - since_ < kYieldsFor)
      sched_yield();
    else
      std::this_thread::sleep_for(std::min<Clock::duration>((now - since_) / kSleepFraction, kLongestSleep));
  }

 private:
  static constexpr std::chrono::milliseconds kYieldsFor{20};
  static constexpr std::chrono::microseconds kLongestSleep{1000};
  static constexpr int kSleepFraction = 64;  // of the time since something moved, which is what a sleep may add to it

  const int pauses_;
  int idle_rounds_ = 0;
  Clock::time_point since_{};
};

}  // namespace fccl
