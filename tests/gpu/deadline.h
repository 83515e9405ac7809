// Deadline: the moment at which a wait on the host gives up.
#pragma once

#include <algorithm>
#include <chrono>

namespace fccl::gpu {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// A value: copied freely, asked by any thread.
class Deadline {
 public:
  static Deadline in(double seconds) {
    return Deadline(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
  }

  double seconds_left() const { return std::max(0.0, -seconds_since(end_)); }
  bool has_passed() const { return Clock::now() >= end_; }
  Clock::time_point moment() const { return end_; }
  // For poll(): rounded up, so that a poll that ends without an event ends after the deadline.
  int milliseconds_left() const { return static_cast<int>(seconds_left() * 1000) + 1; }

 private:
  explicit Deadline(Clock::time_point end) : end_(end) {}

  Clock::time_point end_;
};

}  // namespace fccl::gpu
