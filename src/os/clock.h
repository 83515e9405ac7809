// The one clock of the library: monotonic, so that a changed wall clock fires no deadline.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace fccl::core {

using Clock = std::chrono::steady_clock;

// Converts to a scale that all processes of a host share.
inline uint64_t to_ms(Clock::time_point time) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count());
}

inline double in_seconds(std::chrono::milliseconds span) { return std::chrono::duration<double>(span).count(); }

// A point in time that a wait may not pass.
struct Deadline {
  Clock::time_point at;

  static Deadline after(std::chrono::milliseconds span) { return {Clock::now() + span}; }
  bool passed() const { return Clock::now() >= at; }
  // Returns the time left for poll(2): rounded up, never negative.
  int remaining_ms() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(at - Clock::now()).count();
    return static_cast<int>(std::clamp<long long>(left, 0, 1'000'000'000));
  }
};

}  // namespace fccl::core
