// Tests of how a thread that polls gives up the processor.
#include "waiting/backoff.h"

#include <gtest/gtest.h>

namespace fccl::core {
namespace {

using namespace std::chrono_literals;

TEST(Backoff, yields_until_its_time_is_over) {
  const Backoff backoff{.yield_for = 200us};
  EXPECT_TRUE(backoff.still_yields(199us));
  EXPECT_FALSE(backoff.still_yields(200us));
}

TEST(Backoff, sleeps_a_part_of_the_time_waited_within_its_bounds) {
  const Backoff backoff{.shortest_sleep = 20us, .longest_sleep = 1000us, .part = 64};
  EXPECT_EQ(backoff.sleep_after(64us), 20us);
  EXPECT_EQ(backoff.sleep_after(6400us), 100us);
  EXPECT_EQ(backoff.sleep_after(1s), 1000us);
}

TEST(Backoff, sleeps_at_least_as_long_as_it_says) {
  const Backoff backoff{.shortest_sleep = 5000us, .longest_sleep = 5000us};
  const Clock::time_point began = Clock::now();
  backoff.rest(0us);
  EXPECT_GE(Clock::now() - began, 5ms);
}

TEST(SleepUntil, asks_once_where_the_condition_holds) {
  int asked = 0;
  sleep_until([&] { return ++asked > 0; });
  EXPECT_EQ(asked, 1);
}

TEST(SleepUntil, asks_until_the_condition_holds) {
  int asked = 0;
  sleep_until([&] { return ++asked == 5; });
  EXPECT_EQ(asked, 5);
}

}  // namespace
}  // namespace fccl::core
