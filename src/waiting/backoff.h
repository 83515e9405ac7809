// Backoff: how a thread that polls gives up the processor, first by yields, then by longer and longer sleeps.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "os/clock.h"

namespace fccl::core {

// A value without state; any thread may use it. The caller measures how long it has waited.
struct Backoff {
  std::chrono::microseconds yield_for{0};
  std::chrono::microseconds shortest_sleep{0};
  std::chrono::microseconds longest_sleep{1000};
  int part = 64;  // a sleep lasts one part in this many of the time waited so far

  bool still_yields(Clock::duration waited) const { return waited < yield_for; }
  Clock::duration sleep_after(Clock::duration waited) const {
    return std::clamp<Clock::duration>(waited / part, shortest_sleep, longest_sleep);
  }
  // Yields the processor once, or sleeps once.
  void rest(Clock::duration waited) const {
    if (still_yields(waited))
      sched_yield();
    else
      std::this_thread::sleep_for(sleep_after(waited));
  }
};

// For a thread that waits for its peers.
inline constexpr Backoff kForPeers{.yield_for = std::chrono::milliseconds(20)};
// For a thread that waits for its own GPU, which signals nobody.
inline constexpr Backoff kForGpu{.yield_for = std::chrono::microseconds(200), .shortest_sleep = std::chrono::microseconds(20)};
// For an end that nobody signals, as a signal would cost a call more than a store. The sleeps double.
inline constexpr Backoff kForUnsignalledEnd{.shortest_sleep = std::chrono::microseconds(20), .part = 1};

// Returns once the condition holds.
template <class Condition>
void sleep_until(Condition holds) {
  for (const Clock::time_point began = Clock::now(); !holds();) kForUnsignalledEnd.rest(Clock::now() - began);
}

}  // namespace fccl::core
