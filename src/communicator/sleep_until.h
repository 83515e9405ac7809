// Waits for a condition that nobody signals: by sleeps, longer and longer.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace fccl::core {

// Polls the condition: a call that ends on its own thread signals nothing, since that would cost it more than a store.
template <class Condition>
void sleep_until(Condition holds) {
  constexpr std::chrono::microseconds kShortestPause{20};
  constexpr std::chrono::microseconds kLongestPause{1000};
  for (auto pause = kShortestPause; !holds(); pause = std::min(2 * pause, kLongestPause)) std::this_thread::sleep_for(pause);
}

}  // namespace fccl::core
