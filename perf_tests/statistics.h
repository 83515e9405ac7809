// Statistics of many times of one call.
#pragma once

#include <vector>

namespace fccl::perf {

// All values are in the unit of the times. Percentiles by nearest rank, as nccl-tests computes them.
struct Statistics {
  double minimum = 0;
  double maximum = 0;
  double mean = 0;
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
  double deviation = 0;  // standard deviation of the times themselves, not of a sample

  double variation_percent() const { return mean > 0 ? deviation / mean * 100 : 0; }
};

// Takes at least one time.
Statistics statistics_of(std::vector<double> times);

}  // namespace fccl::perf
