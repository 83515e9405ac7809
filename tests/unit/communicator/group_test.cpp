// Tests of groups of a thread, as far as no communicator is in them.
#include "communicator/group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>

namespace fccl::core {
namespace {

using ::testing::HasSubstr;

TEST(GroupOfAThread, that_is_not_open_cannot_end) {
  const auto ended = Group::of_thread().end();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, fcclInvalidUsage);
  EXPECT_THAT(ended.error().message, HasSubstr("each end needs an fcclGroupStart before it"));
}

TEST(GroupOfAThread, within_another_one_issues_nothing_before_the_outer_end) {
  int created = 0;
  Group::start();
  Group::start();
  Group::of_thread().add([&]() -> Result<void> {
    ++created;
    return {};
  });
  EXPECT_TRUE(Group::of_thread().end());
  EXPECT_TRUE(Group::is_open());
  EXPECT_EQ(created, 0);
  EXPECT_TRUE(Group::of_thread().end());
  EXPECT_FALSE(Group::is_open());
  EXPECT_EQ(created, 1);
}

TEST(GroupOfAThread, makes_communicators_side_by_side) {
  std::barrier both(2);
  const auto meets = [&]() -> Result<void> {
    both.arrive_and_wait();
    return {};
  };
  Group::start();
  Group::of_thread().add(meets);
  Group::of_thread().add(meets);
  EXPECT_TRUE(Group::of_thread().end());
}

TEST(GroupOfAThread, ends_with_the_first_failure_of_a_creation_and_is_empty_then) {
  Group::start();
  Group::of_thread().add([] { return Result<void>{}; });
  Group::of_thread().add([] { return Result<void>{fail(fcclTimeout, "the second")}; });
  Group::of_thread().add([] { return Result<void>{fail(fcclRemoteError, "the third")}; });
  const auto ended = Group::of_thread().end();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().message, "the second");
  Group::start();
  EXPECT_TRUE(Group::of_thread().end());
}

TEST(GroupOfAThread, that_was_refused_creates_nothing_and_ends_with_the_first_refusal) {
  int created = 0;
  Group::start();
  Group::of_thread().add([&]() -> Result<void> {
    ++created;
    return {};
  });
  Group::of_thread().refuse({fcclInvalidArgument, "the first"});
  Group::of_thread().refuse({fcclTimeout, "the second"});
  const auto ended = Group::of_thread().end();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, fcclInvalidArgument);
  EXPECT_EQ(ended.error().message, "a call of the group was refused, so none was issued: the first");
  EXPECT_EQ(created, 0);
}

TEST(GroupOfAThread, that_is_simulated_creates_nothing_and_takes_no_time) {
  int created = 0;
  Group::start();
  Group::of_thread().add([&]() -> Result<void> {
    ++created;
    return {};
  });
  EXPECT_EQ(Group::of_thread().simulate_end().value(), 0.0);
  EXPECT_FALSE(Group::is_open());
  EXPECT_EQ(created, 0);
}

}  // namespace
}  // namespace fccl::core
