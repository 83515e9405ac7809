// Tests of the calls by which ranks find each other, and of the trial whether they gain by reading each other's memory.
#include "creation/init_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>

#include "creation/read_trial.h"
#include "ranks_of_one_process.h"

namespace fccl::core {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

CreateOptions without_reads() {
  CreateOptions options;
  options.settings.cross_memory_attach = "off";
  return options;
}

TEST(InitCallsTest, give_every_rank_the_bytes_of_every_rank) {
  make_states(3, without_reads(), [](CommunicatorState& state) {
    const int mine = 10 * state.control->peers.rank();
    std::array<int, 3> all{};
    const auto done = InitCalls(state, Deadline::after(10s)).exchange(&mine, all.data(), sizeof mine);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(all, (std::array{0, 10, 20}));
  });
}

TEST(InitCallsTest, swap_a_block_between_each_pair_of_ranks) {
  make_states(2, without_reads(), [](CommunicatorState& state) {
    const auto rank = static_cast<uint8_t>(state.control->peers.rank());
    const std::array<uint8_t, 2> given{static_cast<uint8_t>(10 * rank), static_cast<uint8_t>(10 * rank + 1)};
    std::array<uint8_t, 2> taken{};
    const auto done = InitCalls(state, Deadline::after(10s)).swap(given.data(), taken.data(), 1);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(taken, (std::array<uint8_t, 2>{rank, static_cast<uint8_t>(10 + rank)}));
  });
}

TEST(InitCallsTest, take_a_number_each) {
  make_states(1, without_reads(), [](CommunicatorState& state) {
    const uint64_t before = state.number;
    InitCalls calls(state, Deadline::after(10s));
    EXPECT_TRUE(calls.barrier());
    EXPECT_TRUE(calls.barrier());
    EXPECT_EQ(state.number, before + 2);
  });
}

TEST(InitCallsTest, that_nobody_joins_end_at_the_deadline_of_the_creation) {
  std::barrier both(2);
  make_states(2, without_reads(), [&](CommunicatorState& state) {
    if (state.control->peers.rank() == 0) {
      const auto done = InitCalls(state, Deadline::after(50ms)).barrier();
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().code, fcclTimeout);
      EXPECT_THAT(done.error().message, HasSubstr("rank 1 (pid"));
    }
    both.arrive_and_wait();
  });
}

TEST(ReadTrialTest, gains_nothing_where_ranks_cannot_read) {
  make_states(2, without_reads(), [](CommunicatorState& state) {
    InitCalls calls(state, Deadline::after(10s));
    const auto gains = try_ways(calls, state.lanes[kPairLane].lane);
    ASSERT_TRUE(gains) << gains.error().message;
    EXPECT_EQ(gains->reading, 0);
    EXPECT_GT(gains->streaming, 0);
  });
}

TEST(ReadTrialTest, makes_as_many_calls_as_the_numbers_have_room_for) {
  make_states(1, without_reads(), [](CommunicatorState& state) {
    const uint64_t before = state.number;
    InitCalls calls(state, Deadline::after(10s));
    ASSERT_TRUE(try_ways(calls, state.lanes[kPairLane].lane));
    EXPECT_EQ(state.number, before + kTrialCalls);
  });
}

TEST(ReadTrialTest, gives_all_ranks_the_same_answer) {
  CreateOptions options;
  options.settings.cross_memory_attach = "on";
  std::array<Gains, 3> gains{};
  make_states(3, options, [&](CommunicatorState& state) {
    InitCalls calls(state, Deadline::after(10s));
    gains[static_cast<size_t>(state.control->peers.rank())] = try_ways(calls, state.lanes[kPairLane].lane).value();
  });
  EXPECT_GT(gains[0].streaming, 0);
  for (const Gains& each : gains) {
    EXPECT_EQ(each.reading, gains[0].reading);
    EXPECT_EQ(each.streaming, gains[0].streaming);
  }
}

TEST(CreatePartsTest, of_settings_that_differ_is_an_error_on_every_rank) {
  const UniqueId id = open_bootstrap({}).value();
  run_as_ranks(2, [&](int rank) {
    CreateOptions options;
    options.settings.slot_bytes <<= rank;
    const auto made = create_state(join_request(id, rank, 2, options), options);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, fcclInvalidUsage);
    EXPECT_THAT(made.error().message, HasSubstr("FCCL_SLOT_BYTES"));
  });
}

TEST(CreatePartsTest, that_a_rank_does_not_want_any_more_ends_with_its_reason) {
  const UniqueId id = open_bootstrap({}).value();
  const CreateOptions options;
  const auto made = create_state(join_request(id, 0, 2, options), options,
                                 []() -> Result<void> { return fail(fcclAborted, "nobody wants it"); });
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, fcclAborted);
  EXPECT_THAT(made.error().message, HasSubstr("nobody wants it"));
}

TEST(CreatePartsTest, tell_how_many_ranks_share_the_memory_of_a_host) {
  make_states(2, without_reads(), [](CommunicatorState& state) {
    EXPECT_EQ(state.cost.local_ranks, 2);
    EXPECT_GT(state.cost.shared_bytes, 0U);
    EXPECT_GT(state.cost.roster, 0);
    EXPECT_EQ(state.cost.network, 0);
  });
}

}  // namespace
}  // namespace fccl::core
