// Tests of the limit of a wait: when it is checked again, and what cancels it.
#include "waiting/wait_limit.h"

#include <gtest/gtest.h>

#include "waiting/failure_timing.h"

namespace fccl::core {
namespace {

using namespace std::chrono_literals;

TEST(WaitLimit, of_a_deadline_alone_is_never_cancelled) {
  const WaitLimit limit = Deadline::after(0ms);
  EXPECT_TRUE(limit.deadline.passed());
  EXPECT_TRUE(limit.check_cancelled());
}

TEST(WaitLimit, is_cancelled_with_the_reason_of_its_question) {
  const WaitLimit limit(Deadline::after(1h), []() -> Result<void> { return fail(fcclAborted, "the user is tired"); });
  const Result<void> cancelled = limit.check_cancelled();
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().message, "the user is tired");
}

TEST(WaitLimit, is_looked_at_again_soon_and_not_behind_its_deadline) {
  const WaitLimit far = Deadline::after(1h);
  const Clock::time_point before = Clock::now();
  const Deadline next = far.next_look();
  EXPECT_GE(next.at, before + kLookInterval);
  EXPECT_LE(next.at, Clock::now() + kLookInterval);
  const WaitLimit near = Deadline::after(0ms);
  EXPECT_EQ(near.next_look().at, near.deadline.at);
}

}  // namespace
}  // namespace fccl::core
