// Tests of a communicator of one rank: what it takes in which state, its operators, and what is made of it.
#include "communicator/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bootstrap/bootstrap.h"
#include "communicator/derivation.h"
#include "communicator/group.h"
#include "communicator/operators.h"
#include "operations/communicator_state.h"

namespace fccl::core {
namespace {

using ::testing::HasSubstr;

class OfOneRank : public ::testing::Test {
 protected:
  OfOneRank() : made(Communicator::create(open_bootstrap(options.settings).value(), 0, 1, options).value()) {}

  template <class T>
  static void expect_failure(const Result<T>& result, fcclResult_t code, const std::string& words) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, code);
    EXPECT_THAT(result.error().message, HasSubstr(words));
  }

  static Call call_of(size_t count) { return {{fcclCollAllGather, fcclInt8, ReduceOp::sum, -1, count}}; }

  CreateOptions options;
  std::unique_ptr<Communicator> made;
};

TEST_F(OfOneRank, takes_no_call_once_it_is_finalized) {
  EXPECT_TRUE(made->check_usable());
  EXPECT_TRUE(made->finalize());
  EXPECT_FALSE(made->check_usable());
  expect_failure(made->run(call_of(0), nullptr), fcclInvalidUsage, "finalized");
}

TEST_F(OfOneRank, that_is_revoked_fails_with_that_from_then_on) {
  EXPECT_FALSE(made->async_error());
  EXPECT_TRUE(made->revoke());
  EXPECT_EQ(made->async_error()->code, fcclAborted);
  EXPECT_STREQ(made->last_error(), "rank 0 aborted the communicator [FCCL-10001]");
  expect_failure(made->run(call_of(0), nullptr), fcclAborted, "rank 0 aborted the communicator");
}

TEST_F(OfOneRank, has_a_factor_for_its_own_type_alone) {
  const fcclRedOp_t op = made->operators().create({fcclFloat32, {}});
  EXPECT_TRUE(made->operators().factor_of(op, fcclFloat32));
  expect_failure(made->operators().factor_of(op, fcclInt8), fcclInvalidArgument,
                 "the operator was made for float32, the call is of int8");
}

TEST_F(OfOneRank, gives_the_number_of_a_destroyed_operator_to_the_next_one) {
  const fcclRedOp_t first = made->operators().create({fcclFloat32, {}});
  const fcclRedOp_t second = made->operators().create({fcclFloat32, {}});
  EXPECT_NE(first, second);
  EXPECT_TRUE(made->operators().destroy(first));
  EXPECT_EQ(made->operators().create({fcclInt8, {}}), first);
}

TEST_F(OfOneRank, has_no_factor_for_the_operators_that_all_communicators_have) {
  expect_failure(made->operators().factor_of(fcclMax, fcclFloat32), fcclInvalidArgument,
                 "is not an operator that fcclRedOpCreatePreMulSum");
}

TEST_F(OfOneRank, expects_long_calls_to_take_longer) {
  EXPECT_GT(made->estimate(call_of(0)), 0);
  EXPECT_NEAR(made->estimate(call_of(5'000'000'000)), 1.0, 0.01);
}

TEST_F(OfOneRank, invites_by_one_id_at_a_time) {
  EXPECT_TRUE(made->derivation().invite());
  expect_failure(made->derivation().invite(), fcclInvalidUsage,
                 "rank 0 has made a unique id already by which nobody has come yet");
}

TEST_F(OfOneRank, cannot_grow_without_an_id) {
  expect_failure(made->derivation().grow(2, {}, options), fcclInvalidUsage, "none of the 1 ranks has a unique id to grow by");
  EXPECT_TRUE(made->check_usable());
}

TEST_F(OfOneRank, splits_into_nothing_without_a_color) {
  const auto part = made->derivation().split(-1, 0, options);
  ASSERT_TRUE(part) << part.error().message;
  EXPECT_EQ(*part, nullptr);
}

TEST_F(OfOneRank, splits_into_a_part_with_options_of_its_own) {
  CreateOptions others;
  others.name = "part";
  const auto part = made->derivation().split(3, 0, others);
  ASSERT_TRUE(part) << part.error().message;
  EXPECT_EQ((*part)->options().name, "part");
  EXPECT_EQ((*part)->ranks(), 1);
}

TEST_F(OfOneRank, that_is_cancelled_in_a_split_fails_too) {
  const auto cancelled = []() -> Result<void> { return fail(fcclAborted, "nobody wants it"); };
  expect_failure(made->derivation().split(0, 0, options, cancelled), fcclAborted,
                 "rank 0 ended a communicator that was being made of this one");
  EXPECT_TRUE(made->async_error());
}

TEST_F(OfOneRank, that_is_cancelled_before_a_shrink_stays_good) {
  const auto cancelled = []() -> Result<void> { return fail(fcclAborted, "nobody wants it"); };
  expect_failure(made->derivation().shrink({}, ShrinkAs::healthy, options, cancelled), fcclAborted, "nobody wants it");
  EXPECT_TRUE(made->check_usable());
}

TEST_F(OfOneRank, that_has_failed_shrinks_only_as_one_that_has_ended) {
  EXPECT_TRUE(made->revoke());
  expect_failure(made->derivation().shrink({}, ShrinkAs::healthy, options), fcclAborted, "rank 0 aborted the communicator");
  const auto shrunk = made->derivation().shrink({}, ShrinkAs::ended, options);
  ASSERT_TRUE(shrunk) << shrunk.error().message;
  EXPECT_TRUE((*shrunk)->check_usable());
}

TEST_F(OfOneRank, that_is_shrunk_as_ended_has_failed_then) {
  EXPECT_TRUE(made->derivation().shrink({}, ShrinkAs::ended, options));
  EXPECT_STREQ(made->last_error(), "rank 0 ended the communicator to shrink it [FCCL-10002]");
}

TEST_F(OfOneRank, leaves_the_calls_of_an_open_group_to_its_end) {
  std::byte given{7}, taken{0};
  Call call = call_of(1);
  call.send = &given;
  call.recv = &taken;
  Group::start();
  EXPECT_TRUE(made->run(call, nullptr));
  EXPECT_EQ(taken, std::byte{0});
  EXPECT_TRUE(Group::of_thread().end());
  EXPECT_EQ(taken, std::byte{7});
}

}  // namespace
}  // namespace fccl::core
