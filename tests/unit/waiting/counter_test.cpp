// Tests of counters: when a wait ends, also across the wrap, and what is visible after it.
#include "waiting/counter.h"

#include <gtest/gtest.h>

#include <thread>

namespace fccl::core {
namespace {

TEST(Awaited, is_reached_at_its_target_and_beyond) {
  Counter counter;
  const Awaited awaited{&counter.value, 5, 0};
  EXPECT_FALSE(awaited.reached());
  counter.publish(4);
  EXPECT_FALSE(awaited.reached());
  counter.publish(5);
  EXPECT_TRUE(awaited.reached());
  counter.publish(6);
  EXPECT_TRUE(awaited.reached());
}

TEST(Awaited, is_not_reached_before_a_wrap_and_stays_reached_behind_it) {
  Counter counter;
  const Awaited awaited{&counter.value, 2, 0};
  counter.publish(~uint64_t{0});
  EXPECT_FALSE(awaited.reached());
  counter.publish(1);
  EXPECT_FALSE(awaited.reached());
  counter.publish(2);
  EXPECT_TRUE(awaited.reached());
  const Awaited last{&counter.value, ~uint64_t{0}, 0};
  EXPECT_TRUE(last.reached());
}

TEST(Counter, shows_what_was_written_before_it_was_published) {
  Counter counter;
  uint64_t payload = 0;
  std::thread writer([&] {
    payload = 42;
    counter.publish(1);
  });
  const Awaited awaited{&counter.value, 1, 0};
  while (!awaited.reached()) std::this_thread::yield();
  EXPECT_EQ(payload, 42U);
  writer.join();
}

TEST(Counter, has_a_cache_line_of_its_own) {
  EXPECT_EQ(sizeof(Counter), 64U);
  EXPECT_EQ(alignof(Counter), 64U);
}

}  // namespace
}  // namespace fccl::core
