// Counts of what was completed, per collective.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "fccl/fccl.h"

namespace fccl {

// One communicator's counts. The entry of a collective is written by the one thread that runs the collective's lane, and read
// by any; a communicator adds its counts to those of the process when it ends.
class Statistics {
 public:
  Statistics();
  ~Statistics();
  Statistics(const Statistics&) = delete;
  Statistics& operator=(const Statistics&) = delete;

  // `calls`: 0 for a sub-call that is not the last of its call.
  void count(fcclColl_t collective, uint64_t bytes, double seconds, uint64_t calls = 1);
  fcclCounter_t of(fcclColl_t collective) const;
  // Over all communicators that this process has or had.
  static fcclCounter_t of_process(fcclColl_t collective);

 private:
  struct Entry {
    std::atomic<uint64_t> calls{0};
    std::atomic<uint64_t> bytes{0};
    std::atomic<double> seconds{0};
  };
  std::array<Entry, fcclNumColls> entries_;
};

}  // namespace fccl
