// Counters: calls and bytes that a rank has completed, per collective.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "processes/size.h"
#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

fcclCounter_t counter_of(fcclComm_t comm, fcclColl_t collective) {
  fcclCounter_t counter{};
  EXPECT_TRUE(succeeded(fcclCommGetCounter(comm, collective, &counter)));
  return counter;
}

fcclCounter_t counter_of_process(fcclColl_t collective) {
  fcclCounter_t counter{};
  EXPECT_TRUE(succeeded(fcclGetProcessCounter(collective, &counter)));
  return counter;
}

class InitCost : public ::testing::TestWithParam<Size> {};

TEST_P(InitCost, tells_its_steps_what_was_sent_and_the_memory_that_the_ranks_share) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const int64_t begin = now_ns();
    const Comm comm(seat);
    const double seconds = ms_since(begin) * 1e-3;
    fcclInitCost_t cost{};
    cost.size = sizeof cost;
    ASSERT_TRUE(succeeded(fcclCommGetInitCost(comm, &cost)));
    EXPECT_EQ(cost.size, sizeof cost);
    EXPECT_GT(cost.seconds, 0);
    EXPECT_LE(cost.seconds, seconds);
    EXPECT_DOUBLE_EQ(cost.seconds, cost.rosterSeconds + cost.segmentSeconds + cost.barrierSeconds);
    EXPECT_EQ(cost.networkSeconds + cost.hostsSeconds, 0);
    // The root has read a hello at least, and the bytes of the handshake before it.
    EXPECT_GE(cost.sockets, 1U);
    EXPECT_GE(cost.messages, 1U);
    EXPECT_GT(cost.bytes, 100U);
    EXPECT_EQ(cost.localRanks, seat.ranks);
    EXPECT_GT(cost.sharedBytes, 4096U * seat.ranks);
    seat.meet();
  });
}

TEST_P(InitCost, gives_a_program_that_knows_less_no_more_than_that) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    fcclInitCost_t cost;
    std::memset(&cost, 0x5a, sizeof cost);
    cost.size = offsetof(fcclInitCost_t, rosterSeconds);
    double unknown;
    std::memcpy(&unknown, &cost.rosterSeconds, sizeof unknown);
    ASSERT_TRUE(succeeded(fcclCommGetInitCost(comm, &cost)));
    EXPECT_GT(cost.seconds, 0);
    EXPECT_EQ(cost.rosterSeconds, unknown);
    cost.size = 0;
    EXPECT_EQ(fcclCommGetInitCost(comm, &cost), fcclInvalidArgument);
    seat.meet();
  });
}

INSTANTIATE_TEST_SUITE_P(As, InitCost, ::testing::ValuesIn(sizes(2, 3)), name_of_size);

class Counters : public ::testing::TestWithParam<Size> {};

TEST_P(Counters, are_zero_after_init_and_split) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    fcclComm_t made = nullptr;
    ASSERT_TRUE(succeeded(fcclCommSplit(comm, 0, 0, &made, nullptr)));
    const Comm child(made);
    for (int collective = 0; collective < fcclNumColls; ++collective)
      for (const fcclComm_t each : {fcclComm_t{comm}, fcclComm_t{child}}) {
        EXPECT_EQ(counter_of(each, static_cast<fcclColl_t>(collective)).calls, 0U);
        EXPECT_EQ(counter_of(each, static_cast<fcclColl_t>(collective)).bytes, 0U);
      }
  });
}

TEST_P(Counters, count_calls_and_the_larger_buffer_of_each) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    for (int c = 0; c < fcclCollSend; ++c) {
      const auto collective = static_cast<fcclColl_t>(c);
      const bool barrier = collective == fcclCollBarrier;
      size_t bytes = 0;
      for (const size_t count : {0, 5, 50'000}) {
        const Recipe recipe{.collective = collective, .dtype = fcclFloat32, .count = barrier ? 0 : count};
        EXPECT_EQ(try_collective(recipe, seat.rank, seat.ranks, comm), "");
        const Counts counts = recipe.counts(seat.ranks);
        bytes += sizeof(float) * std::max(input_of_rank(counts, seat.rank).total(), output_of_rank(counts, seat.rank).total());
      }
      EXPECT_EQ(counter_of(comm, collective).calls, 3U) << fcclCollName(collective);
      EXPECT_EQ(counter_of(comm, collective).bytes, bytes) << fcclCollName(collective);
    }
  });
}

TEST_P(Counters, time_calls_that_took_the_ring) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const int64_t begin = now_ns();
    EXPECT_EQ(
        try_collective({.collective = fcclCollAllGather, .dtype = fcclFloat32, .count = 500'000}, seat.rank, seat.ranks, comm),
        "");
    const double seconds = counter_of(comm, fcclCollAllGather).seconds;
    EXPECT_EQ(seconds > 0, seat.ranks > 1);
    EXPECT_LE(seconds, ms_since(begin) * 1e-3);
  });
}

TEST_P(Counters, count_operations_of_streams) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    fcclStream_t stream;
    ASSERT_TRUE(succeeded(fcclStreamCreate(&stream)));
    EXPECT_EQ(
        try_collective({.collective = fcclCollReduce, .dtype = fcclInt64, .count = 9}, seat.rank, seat.ranks, comm, stream),
        "");
    EXPECT_TRUE(succeeded(fcclStreamDestroy(stream)));
    EXPECT_EQ(counter_of(comm, fcclCollReduce).calls, 1U);
    EXPECT_EQ(counter_of(comm, fcclCollReduce).bytes, 72U);
  });
}

TEST_P(Counters, do_not_count_calls_that_were_refused_or_failed) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    float value = 0;
    EXPECT_EQ(fcclAllReduce(nullptr, &value, 1, fcclFloat32, fcclSum, comm, nullptr), fcclInvalidArgument);
    if (seat.ranks > 1) {
      EXPECT_EQ(try_collective({.collective = fcclCollAllReduce, .dtype = fcclInt32, .count = size_t{1} + (seat.rank == 0)},
                               seat.rank, seat.ranks, comm)
                    .empty(),
                false);
    }
    EXPECT_EQ(counter_of(comm, fcclCollAllReduce).calls, 0U);
    seat.meet();
  });
}

TEST_P(Counters, of_the_process_keep_what_destroyed_communicators_counted) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    for (int round = 0; round < 2; ++round) {
      const Comm comm(seat);
      EXPECT_EQ(try_collective({.collective = fcclCollAllGather, .dtype = fcclInt32, .count = 10}, seat.rank, seat.ranks, comm),
                "");
    }
    seat.meet();
    const size_t ranks_here = GetParam().as == RanksAs::threads ? seat.ranks : 1;
    EXPECT_EQ(counter_of_process(fcclCollAllGather).calls, 2 * ranks_here);
    EXPECT_EQ(counter_of_process(fcclCollAllGather).bytes, 2 * ranks_here * 10 * sizeof(int32_t) * seat.ranks);
    EXPECT_EQ(counter_of_process(fcclCollBarrier).calls, 0U);
  });
}

INSTANTIATE_TEST_SUITE_P(As, Counters, ::testing::ValuesIn(sizes(1, 3)), name_of_size);

TEST(CounterNames, of_a_value_that_is_no_collective_are_refused) {
  fcclCounter_t counter;
  EXPECT_EQ(fcclGetProcessCounter(fcclNumColls, &counter), fcclInvalidArgument);
  EXPECT_STREQ(fcclCollName(fcclCollReduceScatter), "ReduceScatter");
}

}  // namespace
}  // namespace fccl::core::testing
