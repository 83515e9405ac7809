// Supervisor: starts the ranks of a run, brings the faults that come from outside, and watches by a clock of its own.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "faults/board.h"
#include "faults/draw.h"

namespace fccl::core::faults {

// The supervisor's observations of a run.
struct Observation {
  int64_t fault_ns = 0;  // when it brought the fault; 0: never
  std::array<int, kMostRanks> pids{};
  std::array<int, kMostRanks> statuses{};
  std::array<int64_t, kMostRanks> gone_ns{};  // when a rank's process had ended
  std::string hang;                           // "" or who had not ended after the limit
  std::string leftovers;                      // "" or processes and files that the run left
};

// The calling process must have one thread. Every process that it started has ended when this returns.
Observation supervise(const Draw& draw, Board& board);

// Gives this process a /tmp and a /dev/shm of its own, so that what others leave there is not taken for a run's; false if the
// system does not allow it.
bool hide_files_of_others();

}  // namespace fccl::core::faults
