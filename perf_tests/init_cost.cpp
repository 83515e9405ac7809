// Words the two lines of --init.
#include "init_cost.h"

#include <cstdio>

#include "report.h"

namespace fccl::perf {

std::vector<Part> parts_of(const fcclInitCost_t& cost) {
  // Each rank of a host reports the shared bytes of the whole host, so it counts only its part.
  const double shared = static_cast<double>(cost.sharedBytes) / cost.localRanks;
  return {{cost.seconds, Combine::maximum},
          {cost.rosterSeconds, Combine::maximum},
          {cost.segmentSeconds, Combine::maximum},
          {cost.barrierSeconds, Combine::maximum},
          {cost.networkSeconds, Combine::maximum},
          {cost.hostsSeconds, Combine::maximum},
          {static_cast<double>(cost.sockets), Combine::sum},
          {static_cast<double>(cost.messages), Combine::sum},
          {static_cast<double>(cost.bytes), Combine::sum},
          {shared, Combine::sum}};
}

std::vector<std::string> lines_of_init(const std::vector<double>& combined, int ranks) {
  const double* of = combined.data();
  char steps[256], sums[256];
  std::snprintf(steps, sizeof steps,
                "%.3f s: roster %.3f, segment %.3f, barrier %.3f, network %.3f, hosts %.3f; each of the slowest rank", of[0],
                of[1], of[2], of[3], of[4], of[5]);
  std::snprintf(sums, sizeof sums, "%.0f sockets, %.0f messages, %s sent; %s of shared memory per rank", of[6], of[7],
                memory_text(of[8]).c_str(), memory_text(of[9] / ranks).c_str());
  return {steps, sums};
}

}  // namespace fccl::perf
