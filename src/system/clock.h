// The one clock of the library: monotonic, so that a changed wall clock fires no deadline.
#pragma once

#include <algorithm>
#include <chrono>

namespace fccl {

using Clock = std::chrono::steady_clock;

// A point in time that a wait may not pass.
struct Deadline {
  Clock::time_point at;

  static Deadline after(std::chrono::milliseconds span) { return {Clock::now() + span}; }
  bool passed() const { return Clock::now() >= at; }
  // Rounded up, never negative: fits poll(2).
  int remaining_ms() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(at - Clock::now()).count();
    return static_cast<int>(std::clamp<long long>(left, 0, 1'000'000'000));
  }
};

}  // namespace fccl
