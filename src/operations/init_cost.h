// InitCost: the time that a rank took to make a communicator, step by step.
#pragma once

#include <cstddef>
#include <utility>

#include "channels/traffic.h"
#include "os/clock.h"

namespace fccl::core {

// All times are in seconds. The thread that makes the communicator fills it; any thread may read it after that.
struct InitCost {
  double roster = 0;        // until this rank knew all others
  double segment = 0;       // until it had the shared memory of its host, and watched its peers
  double barrier = 0;       // until all ranks of its host had it
  double network = 0;       // between hosts: until the leaders had met and its lanes were open
  double hosts = 0;         // between hosts: until all hosts reached each other
  Traffic traffic;          // traffic of this process in that time
  size_t shared_bytes = 0;  // this host's ranks together
  int local_ranks = 0;      // ranks of this host

  double all() const { return roster + segment + barrier + network + hosts; }
};

// Measures the time from step to step. One thread at a time.
class StepClock {
 public:
  // Returns the time since the last step, or since this was made.
  double lap() {
    const Clock::time_point now = Clock::now();
    return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  }

 private:
  Clock::time_point last_ = Clock::now();
};

}  // namespace fccl::core
