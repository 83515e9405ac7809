// Tests the statistics by lists whose answers are plain.
#include "statistics.h"

#include <gtest/gtest.h>

namespace fccl::perf {
namespace {

TEST(Statistics, OfOneToAHundredAreTheOnesOfNcclTests) {
  std::vector<double> times;
  for (int i = 100; i >= 1; --i) times.push_back(i);
  const Statistics found = statistics_of(times);
  EXPECT_EQ(found.minimum, 1);
  EXPECT_EQ(found.maximum, 100);
  EXPECT_EQ(found.mean, 50.5);
  EXPECT_EQ(found.p50, 51);
  EXPECT_EQ(found.p95, 95);
  EXPECT_EQ(found.p99, 99);
  EXPECT_NEAR(found.deviation, 28.8661, 1e-4);
}

TEST(Statistics, OfOneTimeAreThatTime) {
  const Statistics found = statistics_of({3});
  for (const double each : {found.minimum, found.maximum, found.mean, found.p50, found.p95, found.p99}) EXPECT_EQ(each, 3);
  EXPECT_EQ(found.variation_percent(), 0);
}

}  // namespace
}  // namespace fccl::perf
