// InitCost: what it took a rank to make a communicator, step by step.
#pragma once

#include <cstddef>
#include <utility>

#include "bootstrap/traffic.h"
#include "system/clock.h"

namespace fccl {

// In seconds, but where it says otherwise. Filled while the communicator is made, by the thread that does; read by any after
// that.
struct InitCost {
  double roster = 0;        // until this rank knew all others
  double segment = 0;       // until it had the memory of its host, and watched its peers
  double barrier = 0;       // until all ranks of its host had
  double network = 0;       // between hosts: until the leaders had met and its lanes were open
  double hosts = 0;         // between hosts: until all hosts reached each other
  Traffic traffic;          // of this process meanwhile
  size_t shared_bytes = 0;  // of this host's ranks together
  int local_ranks = 0;      // these

  double all() const { return roster + segment + barrier + network + hosts; }
};

// The time from step to step. One thread at a time.
class StepClock {
 public:
  // Since the last step, or since this was made.
  double lap() {
    const Clock::time_point now = Clock::now();
    return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  }

 private:
  Clock::time_point last_ = Clock::now();
};

}  // namespace fccl
