// Sorts and sums.
#include "statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fccl::perf {

Statistics statistics_of(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const std::size_t count = times.size();
  const auto percentile = [&](std::size_t percent) { return times[std::min(count, (count * percent + 99) / 100) - 1]; };
  const double mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(count);
  double squares = 0;
  for (const double time : times) squares += (time - mean) * (time - mean);
  return {.minimum = times.front(),
          .maximum = times.back(),
          .mean = mean,
          .p50 = times[count / 2],
          .p95 = percentile(95),
          .p99 = percentile(99),
          .deviation = std::sqrt(squares / static_cast<double>(count))};
}

}  // namespace fccl::perf
