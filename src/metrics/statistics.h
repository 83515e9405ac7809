// Counts of completed calls, by collective, path and class of sizes, and the time waited for each rank.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "metrics/process_page.h"
#include "os/clock.h"

namespace fccl::core {

// One communicator's counts, on the page of its process. The thread that runs a collective's lane writes the collective's
// entries, and any thread reads them; a communicator adds its counts to those of the process when it ends.
class Statistics {
 public:
  // Shows on the page which rank this is; `processes` are those of its host.
  void show(const std::string& name, int rank, int ranks, const std::vector<int>& processes);
  // Shows how long it took to make the communicator.
  void show_init(double seconds);

  struct Count {
    fcclColl_t collective;
    size_t path;
    uint64_t bytes;
    uint64_t calls = 1;        // 0 for a sub-call that is not the last of its call
    uint64_t nanoseconds = 0;  // 0: not timed
  };
  void count(const Count& count) {
    metrics::CallTable& table = place_.part().calls;
    if (!table.has(count.collective)) [[unlikely]]
      table.called.fetch_or(uint64_t{1} << count.collective, std::memory_order_relaxed);
    metrics::Calls& calls = table.of[count.collective][count.path][metrics::size_class_of(count.bytes)];
    metrics::raise(calls.calls, count.calls);
    metrics::raise(calls.bytes, count.bytes);
    if (count.nanoseconds != 0) calls.time(count.nanoseconds);
  }
  // A processor has read `read` bytes for a call on GPU memory; `bytes` are those of the call. Any thread may count.
  struct Copied {
    fcclColl_t collective;
    size_t path;
    uint64_t bytes;
    uint64_t read;
  };
  void count_copied(const Copied& copied);

  // A call that has waited for a millisecond, until it is over. `span`: the time that the rank has waited since the last call
  // of this function.
  struct InFlight {
    fcclColl_t collective;
    uint64_t bytes;
    Clock::time_point since;
    int awaited;  // -1: any rank
  };
  void show_wait(size_t lane, const InFlight& call, std::chrono::nanoseconds span);
  void end_wait(size_t lane);

  fcclCounter_t of(fcclColl_t collective) const;
  fcclCallMetrics_t calls_of(fcclColl_t collective, size_t path, size_t size) const;
  // Returns the seconds that this rank has waited for `peer`, in waits of a millisecond or more.
  double waited_for(int peer) const;
  fcclCallInFlight_t oldest_in_flight() const;
  // Sums over all communicators that this process has or had.
  static fcclCounter_t of_process(fcclColl_t collective);

 private:
  metrics::CommunicatorPlace place_;
};

}  // namespace fccl::core
