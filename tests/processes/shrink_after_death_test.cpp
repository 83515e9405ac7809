// Shrinks after a rank was killed: the others go on without any victim, at once. Ranks are processes here.
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "processes/ranks.h"
#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

constexpr int kRanks = 4;

// Repeats a collective until it fails by the death of others; one that `dies` ends in it.
fcclResult_t call_until_death(const Seat& seat, fcclComm_t comm, bool dies) {
  std::thread killer;
  if (dies)
    killer = std::thread([&] {
      std::this_thread::sleep_for(20ms);
      seat.board.notes[0] = now_ns();
      kill(getpid(), SIGKILL);
    });
  for (int i = 0;; ++i) {
    Trial trial({.collective = fcclCollAllReduce, .dtype = fcclInt32, .count = 100'000, .iteration = i}, seat.rank, seat.ranks);
    if (const fcclResult_t result = trial.issue(comm); result != fcclSuccess) {
      if (killer.joinable()) killer.join();
      return result;
    }
    EXPECT_EQ(trial.fault(), "");
  }
}

std::vector<int> dead_ranks(fcclComm_t comm) {
  int count = kRanks;
  std::vector<int> dead(kRanks, -7);
  EXPECT_TRUE(succeeded(fcclCommGetDeadRanks(comm, dead.data(), &count)));
  dead.resize(static_cast<size_t>(count));
  return dead;
}

// As what rank this one goes on without `dead`, and whether its communicator works.
void expect_to_work(fcclComm_t comm, const Seat& seat, const std::vector<int>& dead) {
  const int ranks = seat.ranks - static_cast<int>(dead.size());
  const auto rank = seat.rank - static_cast<int>(std::ranges::count_if(dead, [&](int other) { return other < seat.rank; }));
  for (int i = 0; i < 5; ++i)
    for (const fcclColl_t collective : {fcclCollAllReduce, fcclCollAllGather, fcclCollAlltoAll})
      EXPECT_EQ(
          try_collective({.collective = collective, .dtype = fcclInt32, .count = i % 2 == 0 ? 9u : 30'000u, .iteration = i},
                         rank, ranks, comm),
          "");
}

class ShrinkAfterDeath : public ::testing::TestWithParam<int> {};

TEST_P(ShrinkAfterDeath, gives_the_survivors_a_communicator_that_works_within_a_second) {
  const int victim = GetParam();
  run_ranks({.as = RanksAs::processes, .ranks = kRanks, .killed = {victim}}, [&](const Seat& seat) {
    fcclComm_t comm = Comm(seat).release();
    EXPECT_EQ(call_until_death(seat, comm, seat.rank == victim), fcclRemoteError);
    EXPECT_NE(std::string(fcclGetLastError(comm)).find("rank " + std::to_string(victim) + " (pid"), std::string::npos)
        << fcclGetLastError(comm);
    std::vector<int> dead = dead_ranks(comm);
    EXPECT_EQ(dead, std::vector<int>{victim});
    fcclComm_t without = nullptr;
    ASSERT_TRUE(succeeded(fcclCommShrink(comm, dead.data(), 1, &without, nullptr, FCCL_SHRINK_ABORT)));
    EXPECT_TRUE(in_time(seat.board.notes[0], 1000));
    // The old one may go before the new one, in between, or after it.
    if (seat.rank % 3 == 0) fcclCommDestroy(comm);
    expect_to_work(without, seat, dead);
    if (seat.rank % 3 == 1) fcclCommDestroy(comm);
    EXPECT_EQ(dead_ranks(without), std::vector<int>{});
    fcclCommDestroy(without);
    if (seat.rank % 3 == 2) fcclCommAbort(comm);
  });
}

INSTANTIATE_TEST_SUITE_P(Of, ShrinkAfterDeath, ::testing::Range(0, kRanks));

TEST(ShrinkAfterDeaths, of_two_names_both_and_works_also_again) {
  run_ranks({.as = RanksAs::processes, .ranks = kRanks, .killed = {0, 2}}, [](const Seat& seat) {
    const Comm comm(seat);
    EXPECT_EQ(call_until_death(seat, comm, seat.rank == 0 || seat.rank == 2), fcclRemoteError);
    std::vector<int> dead;
    for (int patience = 0; patience < 5000 && dead.size() < 2; ++patience) {
      dead = dead_ranks(comm);
      std::this_thread::sleep_for(1ms);
    }
    ASSERT_EQ(dead, (std::vector<int>{0, 2}));
    for (int round = 0; round < 2; ++round) {
      fcclComm_t without = nullptr;
      ASSERT_TRUE(succeeded(fcclCommShrink(comm, dead.data(), 2, &without, nullptr, FCCL_SHRINK_ABORT)));
      expect_to_work(without, seat, dead);
      fcclCommDestroy(without);
    }
  });
}

TEST(ShrinkAfterDeaths, names_a_survivor_that_dies_before_it_comes_and_works_without_it) {
  run_ranks({.as = RanksAs::processes, .ranks = kRanks, .killed = {1, 3}}, [](const Seat& seat) {
    const Comm comm(seat);
    EXPECT_EQ(call_until_death(seat, comm, seat.rank == 3), fcclRemoteError);
    if (seat.rank == 1) {
      // While the others wait for it.
      std::this_thread::sleep_for(100ms);
      kill(getpid(), SIGKILL);
    }
    int dead[] = {3, 1};
    fcclComm_t without = nullptr;
    EXPECT_EQ(fcclCommShrink(comm, dead, 1, &without, nullptr, FCCL_SHRINK_ABORT), fcclRemoteError);
    EXPECT_NE(std::string(fcclGetLastError(nullptr)).find("rank 1 (pid"), std::string::npos) << fcclGetLastError(nullptr);
    EXPECT_EQ(without, nullptr);
    EXPECT_EQ(dead_ranks(comm), (std::vector<int>{1, 3}));
    ASSERT_TRUE(succeeded(fcclCommShrink(comm, dead, 2, &without, nullptr, FCCL_SHRINK_ABORT)));
    expect_to_work(without, seat, {1, 3});
    fcclCommDestroy(without);
  });
}

}  // namespace
}  // namespace fccl::core::testing
