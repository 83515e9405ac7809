// Tests of the processors that a thread may run on.
#include "os/processors.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <thread>

namespace fccl::core {
namespace {

TEST(Processors, are_at_least_one_and_no_more_than_the_machine_has) {
  EXPECT_GE(allowed_processors().count(), 1u);
  EXPECT_LE(allowed_processors().count(), static_cast<size_t>(sysconf(_SC_NPROCESSORS_CONF)));
}

TEST(Processors, are_one_for_a_thread_that_is_bound_to_one) {
  size_t first = 0;
  while (!allowed_processors()[first]) ++first;
  Processors bound;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    bound = allowed_processors();
  }).join();
  EXPECT_EQ(bound.count(), 1u);
  EXPECT_TRUE(bound[first]);
}

}  // namespace
}  // namespace fccl::core
