// Tests how far apart ranks are sent to a call, and who is found to have come last.
#include "skew.h"

#include <gtest/gtest.h>

#include <set>

namespace fccl::perf {
namespace {

TEST(Skew, DelaysDifferByRankAndIterationAndStayBelowTheirBound) {
  std::set<double> delays;
  double greatest = 0;
  for (int rank = 0; rank < 4; ++rank) {
    for (int iteration = 0; iteration < 100; ++iteration) {
      const double delay = drawn_delay(rank, iteration, 50e-6);
      EXPECT_GE(delay, 0);
      EXPECT_LT(delay, 50e-6);
      EXPECT_EQ(delay, drawn_delay(rank, iteration, 50e-6));
      delays.insert(delay);
      greatest = std::max(greatest, delay);
    }
  }
  EXPECT_EQ(delays.size(), 400u);
  EXPECT_GT(greatest, 45e-6);
}

TEST(Skew, OnlyTheCallsThatARankCameLastToAreItsCallsAsLast) {
  const Arrivals own{.delays = {1, 5, 3}, .calls = {10, 20, 30}};
  EXPECT_EQ(calls_as_last(own, {4, 5, 3}), (std::vector<double>{0, 20, 30}));
}

TEST(Skew, TheMediansAreThoseOfTheDistancesAndOfTheLastCalls) {
  const Skew skew = skew_of({0, 1, 0}, {4, 3, 9}, {7, 50, 8});
  EXPECT_EQ(skew.apart, 4);
  EXPECT_EQ(skew.last, 8);
}

}  // namespace
}  // namespace fccl::perf
