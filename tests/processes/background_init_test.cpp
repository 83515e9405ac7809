// Init that returns at once, what may be asked of such a communicator until it is made, how that ends early, and init by
// several ids.
#include <array>
#include <string>
#include <thread>
#include <vector>

#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

class BackgroundInit : public ::testing::TestWithParam<RanksAs> {
 public:
  Launch launch(int ranks) const { return {GetParam(), ranks}; }
};

fcclConfig_t at_once() {
  fcclConfig_t config = config_of_tests();
  config.blocking = 0;
  return config;
}

fcclComm_t begin(int ranks, const fcclUniqueId& id, int rank, fcclConfig_t config = at_once()) {
  fcclComm_t comm = nullptr;
  EXPECT_EQ(fcclCommInitRankConfig(&comm, ranks, id, rank, &config), fcclInProgress) << fcclGetLastError(nullptr);
  EXPECT_NE(comm, nullptr);
  return comm;
}

// The result of making the communicator.
fcclResult_t await(fcclComm_t comm) {
  fcclResult_t state = fcclInProgress;
  while (state == fcclInProgress) {
    EXPECT_TRUE(succeeded(fcclCommGetAsyncError(comm, &state)));
    std::this_thread::sleep_for(1ms);
  }
  return state;
}

std::string fault_of(fcclComm_t comm, const Seat& seat) {
  return try_collective({.collective = fcclCollAllReduce, .dtype = fcclInt32, .count = 3'000, .iteration = 1}, seat.rank,
                        seat.ranks, comm);
}

TEST_P(BackgroundInit, returns_before_the_others_come_and_then_makes_a_communicator_that_works) {
  run_ranks(launch(3), [](const Seat& seat) {
    const fcclUniqueId id = agree_on_id(seat);
    fcclComm_t made = nullptr;
    if (seat.rank == 0) {
      made = begin(3, id, 0);
      fcclResult_t state = fcclSuccess;
      EXPECT_TRUE(succeeded(fcclCommGetAsyncError(made, &state)));
      EXPECT_EQ(state, fcclInProgress);
      EXPECT_STREQ(fcclGetLastError(made), "");
    }
    seat.meet();
    if (seat.rank != 0) made = begin(3, id, seat.rank);
    const Comm comm(made);
    EXPECT_EQ(await(comm), fcclSuccess) << fcclGetLastError(comm);
    EXPECT_EQ(fault_of(comm, seat), "");
  });
}

TEST_P(BackgroundInit, refuses_calls_until_it_is_done_and_says_what_to_ask) {
  run_ranks(launch(2), [](const Seat& seat) {
    const fcclUniqueId id = agree_on_id(seat);
    fcclComm_t made = nullptr;
    if (seat.rank == 0) {
      made = begin(2, id, 0);
      int value = -7;
      fcclComm_t part = nullptr;
      const std::array results = {fcclAllReduce(&value, &value, 1, fcclInt32, fcclSum, made, nullptr),
                                  fcclSend(&value, 1, fcclInt32, 1, made, nullptr),
                                  fcclCommCount(made, &value),
                                  fcclCommUserRank(made, &value),
                                  fcclCommSetTimeout(made, 1000),
                                  fcclCommRevoke(made, 0),
                                  fcclCommGetDeadRanks(made, nullptr, &value),
                                  fcclCommShrink(made, nullptr, 0, &part, nullptr, FCCL_SHRINK_ABORT),
                                  fcclCommSplit(made, 0, 0, &part, nullptr)};
      for (const fcclResult_t result : results) EXPECT_EQ(result, fcclInvalidUsage);
      EXPECT_EQ(value, -7);
      EXPECT_NE(std::string(fcclGetLastError(nullptr)).find("fcclCommGetAsyncError"), std::string::npos)
          << fcclGetLastError(nullptr);
    }
    seat.meet();
    if (seat.rank == 1) made = begin(2, id, 1);
    const Comm comm(made);
    EXPECT_EQ(await(comm), fcclSuccess) << fcclGetLastError(comm);
    EXPECT_EQ(fault_of(comm, seat), "");
  });
}

TEST_P(BackgroundInit, that_fails_tells_the_error_and_gives_it_to_every_call) {
  run_ranks(launch(2), [](const Seat& seat) {
    const fcclUniqueId id = agree_on_id(seat);
    if (seat.rank == 0) {
      fcclConfig_t config = at_once();
      config.initTimeoutMs = 300;
      // Rank 1 never comes.
      const Comm comm(begin(2, id, 0, config));
      EXPECT_EQ(await(comm), fcclTimeout);
      EXPECT_NE(std::string(fcclGetLastError(comm)).find("missing: rank 1"), std::string::npos) << fcclGetLastError(comm);
      EXPECT_EQ(fcclBarrier(comm, nullptr), fcclTimeout);
      EXPECT_EQ(fcclCommFinalize(comm), fcclTimeout);
    }
    seat.meet();
  });
}

TEST_P(BackgroundInit, ends_soon_when_it_is_destroyed_aborted_or_finalized) {
  run_ranks(launch(2), [](const Seat& seat) {
    for (int way = 0; way < 3; ++way) {
      const fcclUniqueId id = agree_on_id(seat);
      if (seat.rank == 0) {
        fcclComm_t comm = begin(2, id, 0);
        std::this_thread::sleep_for(std::chrono::milliseconds(30 * way));
        const int64_t begin = now_ns();
        if (way == 2) {
          EXPECT_EQ(fcclCommFinalize(comm), fcclAborted) << fcclGetLastError(comm);
        }
        EXPECT_TRUE(succeeded(way == 1 ? fcclCommAbort(comm) : fcclCommDestroy(comm)));
        EXPECT_TRUE(in_time(begin, 1500));
      }
      seat.meet();
      if (seat.rank == 1) {
        // A rank that comes after the end is told of it.
        const Comm comm(begin(2, id, 1));
        EXPECT_NE(await(comm), fcclSuccess);
        EXPECT_NE(std::string(fcclGetLastError(comm)).find("rank 0"), std::string::npos) << fcclGetLastError(comm);
      }
      seat.meet();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(As, BackgroundInit, ::testing::ValuesIn(every_kind()),
                         [](const auto& each) { return name_of(each.param); });

TEST(BackgroundInitOfOneThread, makes_all_ranks_without_a_group) {
  fcclUniqueId id;
  ASSERT_TRUE(succeeded(fcclGetUniqueId(&id)));
  const Comm first(begin(2, id, 0)), second(begin(2, id, 1));
  EXPECT_EQ(await(first), fcclSuccess) << fcclGetLastError(first);
  EXPECT_EQ(await(second), fcclSuccess) << fcclGetLastError(second);
  int ranks = 0;
  EXPECT_TRUE(succeeded(fcclCommCount(second, &ranks)));
  EXPECT_EQ(ranks, 2);
}

class InitByIds : public ::testing::TestWithParam<int> {};

TEST_P(InitByIds, makes_a_communicator_that_works_and_releases_every_id) {
  // With the first thread the thread sanitizer begins one of its own.
  std::thread([] {}).join();
  const int most = GetParam(), threads = count_threads();
  for (const bool waits : {true, false})
    run_ranks({RanksAs::threads, 3}, [&](const Seat& seat) {
      std::vector<fcclUniqueId> ids;
      for (int i = 0; i < most; ++i) ids.push_back(agree_on_id(seat));
      fcclConfig_t config = waits ? config_of_tests() : at_once();
      fcclComm_t made = nullptr;
      EXPECT_EQ(fcclCommInitRankScalable(&made, 3, seat.rank, most, ids.data(), &config), waits ? fcclSuccess : fcclInProgress)
          << fcclGetLastError(nullptr);
      const Comm comm(made);
      EXPECT_EQ(await(comm), fcclSuccess) << fcclGetLastError(comm);
      EXPECT_EQ(fault_of(comm, seat), "");
      seat.meet();
    });
  // The threads that served the ids may end a moment later.
  for (int patience = 0; patience < 5000 && count_threads() > threads; ++patience) std::this_thread::sleep_for(1ms);
  EXPECT_LE(count_threads(), threads);
}

INSTANTIATE_TEST_SUITE_P(UpTo, InitByIds, ::testing::Values(1, 2, 5));

TEST(InitByWrongIds, refuses_none_and_names_one_that_is_no_id) {
  std::array<fcclUniqueId, 2> ids{};
  ASSERT_TRUE(succeeded(fcclGetUniqueId(&ids[0])));
  fcclComm_t comm = nullptr;
  EXPECT_EQ(fcclCommInitRankScalable(&comm, 1, 0, 0, ids.data(), nullptr), fcclInvalidArgument);
  EXPECT_EQ(fcclCommInitRankScalable(&comm, 1, 0, 1, nullptr, nullptr), fcclInvalidArgument);
  EXPECT_EQ(fcclCommInitRankScalable(nullptr, 1, 0, 1, ids.data(), nullptr), fcclInvalidArgument);
  EXPECT_EQ(fcclCommInitRankScalable(&comm, 1, 0, 2, ids.data(), nullptr), fcclInvalidArgument);
  EXPECT_NE(std::string(fcclGetLastError(nullptr)).find("commIds[1]: the unique id is all zeros"), std::string::npos)
      << fcclGetLastError(nullptr);
  EXPECT_EQ(comm, nullptr);
}

}  // namespace
}  // namespace fccl::core::testing
