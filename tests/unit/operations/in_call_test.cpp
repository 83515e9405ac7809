// Tests of the flag that says that a thread is inside a call.
#include "operations/in_call.h"

#include <gtest/gtest.h>

namespace fccl::core {
namespace {

TEST(InCall, is_seen_while_it_lasts_and_no_longer) {
  std::atomic<bool> flag{false};
  {
    const InCall inside(flag);
    EXPECT_TRUE(inside.is_outermost());
    EXPECT_TRUE(flag);
  }
  EXPECT_FALSE(flag);
}

TEST(InCall, within_another_one_leaves_the_thread_inside) {
  std::atomic<bool> flag{false};
  const InCall outer(flag);
  {
    const InCall inner(flag);
    EXPECT_FALSE(inner.is_outermost());
  }
  EXPECT_TRUE(flag);
}

}  // namespace
}  // namespace fccl::core
