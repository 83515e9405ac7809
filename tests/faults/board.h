// Board: what the ranks of one run and their supervisor tell each other, in memory that they share.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "processes/ranks.h"

namespace fccl::core::faults {

inline constexpr int kMostRanks = 8;

// How far a rank has come.
enum class Stage : int { starting, joining, at_moment, failed, done };

// One rank's words; written by the rank, read by all.
struct Report {
  std::atomic<Stage> stage{Stage::starting};
  std::atomic<int64_t> iteration{0};   // calls begun at the moment
  std::atomic<int64_t> entered_ns{0};  // when it began its last call
  std::atomic<int64_t> fault_ns{0};    // when it brought a fault upon itself; 0: never
  std::atomic<int64_t> failed_ns{0};   // when it learned of the failure; 0: never
  std::atomic<int> code{fcclSuccess};  // the code of that failure
  std::atomic<bool> had_comm{false};   // true if init had succeeded by then
  std::array<char, 1200> cause{};      // its text
  std::array<char, 2000> complaint{};  // the fault that this rank found
};

struct Board {
  testing::Whiteboard whiteboard;
  std::array<Report, kMostRanks> reports;
  std::atomic<bool> gone{false};  // every victim that was to end has ended
  std::atomic<int> asked{0};      // survivors that have looked at an idle communicator
  std::atomic<bool> over{false};  // the fault is over and calls should come to their end
  std::atomic<int64_t> last_iteration{INT64_MAX};
};

}  // namespace fccl::core::faults
