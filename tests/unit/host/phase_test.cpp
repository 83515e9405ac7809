// Tests of phases: loops that stop at counters, in memory that the caller provides.
#include "host/phase.h"

#include <gtest/gtest.h>

namespace fccl::core {
namespace {

struct Trace {
  int steps = 0;
  bool ended = false;
};

// Notes its own destruction, whatever its cause.
struct EndMark {
  Trace& trace;
  ~EndMark() { trace.ended = true; }
};

Phase count_to([[maybe_unused]] FrameMemory& frame, const Counter* counter, uint64_t last, Trace* trace) {
  const EndMark mark{*trace};
  for (uint64_t target = 1; target <= last; ++target) {
    co_await Awaited{&counter->value, target, 3};
    ++trace->steps;
  }
  co_return Differs{7};
}

TEST(Phase, does_nothing_before_it_is_resumed) {
  FrameMemory frame;
  Counter counter;
  Trace trace;
  const Phase phase = count_to(frame, &counter, 0, &trace);
  EXPECT_EQ(trace.steps, 0);
  EXPECT_FALSE(trace.ended);
}

TEST(Phase, runs_to_the_first_counter_that_is_not_reached) {
  FrameMemory frame;
  Counter counter;
  Trace trace;
  counter.publish(2);
  Phase phase = count_to(frame, &counter, 4, &trace);
  EXPECT_FALSE(phase.resume());
  EXPECT_EQ(trace.steps, 2);
  EXPECT_EQ(phase.awaited().target, 3U);
  EXPECT_EQ(phase.awaited().rank, 3);
}

TEST(Phase, says_at_its_end_how_it_ended) {
  FrameMemory frame;
  Counter counter;
  Trace trace;
  counter.publish(9);
  Phase phase = count_to(frame, &counter, 4, &trace);
  EXPECT_TRUE(phase.resume());
  EXPECT_EQ(trace.steps, 4);
  ASSERT_TRUE(std::holds_alternative<Differs>(phase.outcome()));
  EXPECT_EQ(std::get<Differs>(phase.outcome()).rank, 7);
}

Phase take_a_turn([[maybe_unused]] FrameMemory& frame, const Counter* counter) {
  co_await Turn{{&counter->value, 0, 3}};
  co_return Done{};
}

TEST(Phase, suspends_once_at_a_turn_though_what_it_awaits_is_reached) {
  FrameMemory frame;
  const Counter counter;
  Phase phase = take_a_turn(frame, &counter);
  EXPECT_FALSE(phase.resume());
  EXPECT_TRUE(phase.awaited().reached());
  EXPECT_TRUE(phase.resume());
}

TEST(Phase, that_is_ended_while_it_waits_leaves_its_scopes) {
  FrameMemory frame;
  Counter counter;
  Trace trace;
  Phase phase = count_to(frame, &counter, 4, &trace);
  EXPECT_FALSE(phase.resume());
  phase.end();
  EXPECT_TRUE(trace.ended);
}

TEST(Phase, uses_the_same_memory_one_after_the_other) {
  FrameMemory frame;
  Counter counter;
  counter.publish(1);
  for (int i = 0; i < 100; ++i) {
    Trace trace;
    Phase phase = count_to(frame, &counter, 1, &trace);
    EXPECT_TRUE(phase.resume());
  }
}

TEST(Phase, keeps_running_when_it_is_moved) {
  FrameMemory frame;
  Counter counter;
  Trace trace;
  Phase phase = count_to(frame, &counter, 1, &trace);
  EXPECT_FALSE(phase.resume());
  Phase moved = std::move(phase);
  counter.publish(1);
  EXPECT_TRUE(moved.resume());
  EXPECT_TRUE(trace.ended);
}

TEST(PhaseDeathTest, that_needs_memory_in_use_ends_the_process) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  FrameMemory frame;
  Counter counter;
  Trace trace;
  const Phase phase = count_to(frame, &counter, 1, &trace);
  EXPECT_DEATH((void)count_to(frame, &counter, 1, &trace), "a lane runs one phase at a time");
}

}  // namespace
}  // namespace fccl::core
