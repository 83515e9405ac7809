// How far apart ranks come to a call, and what the call then costs the one that comes last.
#pragma once

#include <vector>

namespace fccl::perf {

// Medians over the iterations, in seconds.
struct Skew {
  double apart = 0;  // between the first rank's arrival and the last one's
  double last = 0;   // that the call took the rank which came last
};

// By how much `rank` comes later than it could to the call of `iteration`: evenly drawn below `most`, the same in every run.
double drawn_delay(int rank, int iteration, double most);

// One process's or one rank's times, one per iteration. `delays` are counted from the barrier that the ranks left together, by
// each rank's own clock; no clock is compared with another rank's.
struct Arrivals {
  std::vector<double> delays;
  std::vector<double> calls;
};

// Of each iteration that this rank was the last to come to, its call; of the others zero. `latest` are the greatest delays of
// all ranks.
std::vector<double> calls_as_last(const Arrivals& own, const std::vector<double>& latest);

// From the earliest and the latest delays of each iteration, and the calls of the ranks that came last.
Skew skew_of(const std::vector<double>& earliest, const std::vector<double>& latest, const std::vector<double>& last_calls);

}  // namespace fccl::perf
