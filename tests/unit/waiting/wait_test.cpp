// Tests the wait of a blocking call: it ends when the counter is reached or the slow path returns an error.
#include "waiting/wait.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "host/phase.h"
#include "os/clock.h"
#include "unit/host/outcomes.h"

namespace fccl::core {
namespace {

using namespace std::chrono_literals;

Phase wait_for([[maybe_unused]] FrameMemory& frame, const Counter* counter, uint64_t last) {
  for (uint64_t target = 1; target <= last; ++target) co_await Awaited{&counter->value, target, 2};
  co_return Done{};
}

Result<Outcome> run_to_end(Phase& phase, const SlowPath& slow, bool oversubscribed, const Poll& poll = {}) {
  while (!phase.resume()) FCCL_TRY(await(phase.awaited(), slow, {oversubscribed}, poll));
  return phase.outcome();
}

// Counts the calls of the slow path, and ends the wait at call number `ends`.
struct Slow {
  int asked = 0;
  int ends = -1;
  int rank = -1;

  SlowPath path() { return {&Slow::look, this}; }
  static Result<void> look(void* context, const Awaited& awaited) {
    auto* slow = static_cast<Slow*>(context);
    slow->rank = awaited.rank;
    if (++slow->asked == slow->ends) return fail(fcclRemoteError, "gone");
    return {};
  }
};

TEST(WaitInACrowd, looks_once_between_two_naps) {
  Counter counter;
  Slow slow;
  slow.ends = 5;
  const Clock::time_point begin = Clock::now();
  EXPECT_FALSE(await({&counter.value, 1, 2}, slow.path(), {true, 4ms}));
  // A wait that yields, or sleeps a fraction of its time, would look every millisecond. The first look comes after the first
  // nap.
  EXPECT_GE(Clock::now() - begin, 5 * 4ms);
}

// Records the awaited rank, and how often the wait asked whether it is here.
struct Here {
  int asked = 0;
  int rank = -1;

  static Result<void> look(void*, const Awaited&) { return fail(fcclRemoteError, "gone"); }
  static bool is_here(void* context, const Awaited& awaited) {
    auto* here = static_cast<Here*>(context);
    ++here->asked;
    here->rank = awaited.rank;
    return true;
  }
};

TEST(WaitForARankOfTheSameProcessor, asks_where_the_rank_is_once_it_has_not_come_soon) {
  Counter counter;
  Here here;
  EXPECT_FALSE(await({&counter.value, 1, 2}, {&Here::look, &here, &Here::is_here}, {false}));
  EXPECT_EQ(here.asked, 1);
  EXPECT_EQ(here.rank, 2);
  counter.publish(1);
  EXPECT_TRUE(await({&counter.value, 1, 2}, {&Here::look, &here, &Here::is_here}, {false}));
  EXPECT_EQ(here.asked, 1);
}

class Wait : public ::testing::TestWithParam<bool> {};

TEST_P(Wait, that_is_over_at_once_does_not_ask) {
  FrameMemory frame;
  Counter counter;
  counter.publish(3);
  Phase phase = wait_for(frame, &counter, 3);
  Slow slow;
  EXPECT_TRUE(run_to_end(phase, slow.path(), GetParam()));
  EXPECT_EQ(slow.asked, 0);
}

TEST_P(Wait, ends_when_another_thread_raises_the_counter) {
  FrameMemory frame;
  Counter counter;
  Phase phase = wait_for(frame, &counter, 50);
  Slow slow;
  std::thread writer([&] {
    for (uint64_t value = 1; value <= 50; ++value) {
      if (value % 10 == 0) std::this_thread::sleep_for(1ms);
      counter.publish(value);
    }
  });
  const auto outcome = run_to_end(phase, slow.path(), GetParam());
  writer.join();
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(is_done(*outcome));
}

TEST_P(Wait, asks_the_slow_path_about_the_rank_that_it_waits_for) {
  FrameMemory frame;
  Counter counter;
  Phase phase = wait_for(frame, &counter, 1);
  Slow slow;
  slow.ends = 3;
  const auto outcome = run_to_end(phase, slow.path(), GetParam());
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "gone");
  EXPECT_EQ(slow.asked, 3);
  EXPECT_EQ(slow.rank, 2);
}

TEST_P(Wait, goes_on_asking_while_it_sleeps) {
  FrameMemory frame;
  Counter counter;
  Phase phase = wait_for(frame, &counter, 1);
  Slow slow;
  slow.ends = 40;
  const Clock::time_point begin = Clock::now();
  EXPECT_FALSE(run_to_end(phase, slow.path(), GetParam()));
  // The wait looks about once per millisecond. More looks would waste the processor; fewer would find out late.
  EXPECT_GE(Clock::now() - begin, 35ms);
  EXPECT_LT(Clock::now() - begin, 2s);
}

// Only the poll raises the counter: at the third poll, which comes soon, or at one after the first look of the slow path.
TEST_P(Wait, polls_until_the_poll_has_brought_what_it_waits_for) {
  struct Network {
    Counter counter;
    int polls = 0;
    int needed = 0;
  };
  for (const int needed : {3, 200}) {
    FrameMemory frame;
    Network network;
    network.needed = needed;
    Phase phase = wait_for(frame, &network.counter, 2);
    const auto poll = [](void* context) {
      auto* network = static_cast<Network*>(context);
      if (++network->polls % network->needed == 0) network->counter.publish(network->counter.value + 1);
    };
    Slow slow;
    EXPECT_TRUE(run_to_end(phase, slow.path(), GetParam(), {poll, &network}));
    EXPECT_EQ(network.polls, 2 * needed);
  }
}

INSTANTIATE_TEST_SUITE_P(With, Wait, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "more_ranks_than_cores" : "a_core_for_each_rank"; });

}  // namespace
}  // namespace fccl::core
