// Measures how far apart ranks come to a call, and the cost of the call for the last one.
#pragma once

#include <vector>

namespace fccl::perf {

// Medians over the iterations, in seconds.
struct Skew {
  double apart = 0;  // between the first rank's arrival and the last one's
  double last = 0;   // the call's time on the rank that came last
};

// Returns how long `rank` delays its call of `iteration`: drawn evenly below `most`, and equal in every run.
double drawn_delay(int rank, int iteration, double most);

// Times of a process or of a rank, one per iteration. `delays` count from the barrier that the ranks left together, by each
// rank's own clock; clocks of different ranks are never compared.
struct Arrivals {
  std::vector<double> delays;
  std::vector<double> calls;
};

// Returns, for each iteration that this rank was the last to come to, its call's time; zero for the others. `latest` holds the
// greatest delays of all ranks.
std::vector<double> calls_as_last(const Arrivals& own, const std::vector<double>& latest);

// Combines the earliest and the latest delays of each iteration with the calls of the ranks that came last.
Skew skew_of(const std::vector<double>& earliest, const std::vector<double>& latest, const std::vector<double>& last_calls);

}  // namespace fccl::perf
