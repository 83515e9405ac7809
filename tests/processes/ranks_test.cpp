// The launcher: a rank that fails, dies or hangs must fail the test, with what it said.
#include "processes/ranks.h"

#include <gtest/gtest-spi.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

namespace fccl::testing {
namespace {

// Runs a launch in a child and ends it as a test would end; what gtest prints goes where a death test reads.
[[noreturn]] void run_and_exit(const Launch& launch, const std::function<void(const Seat&)>& body) {
  dup2(STDERR_FILENO, STDOUT_FILENO);
  run_ranks(launch, body);
  std::fflush(stdout);
  std::_Exit(::testing::Test::HasFailure() ? 1 : 0);
}

void fail_as_rank_one(const Seat& seat) { EXPECT_NE(seat.rank, 1) << "said by the rank itself"; }

void throw_as_rank_one(const Seat& seat) {
  if (seat.rank == 1) throw std::runtime_error("thrown by the rank itself");
}

void hang_as_rank_one(const Seat& seat) {
  while (seat.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

using ::testing::ExitedWithCode;

TEST(RanksDeathTest, as_processes_fail_the_test_by_an_expectation_and_show_its_text) {
  EXPECT_EXIT(run_and_exit({RanksAs::processes, 2}, fail_as_rank_one), ExitedWithCode(1), "said by the rank itself");
}

TEST(RanksDeathTest, as_processes_fail_the_test_by_an_exception_and_show_its_text) {
  EXPECT_EXIT(run_and_exit({RanksAs::processes, 2}, throw_as_rank_one), ExitedWithCode(1), "thrown by the rank itself");
}

TEST(RanksDeathTest, as_threads_fail_the_test_by_an_expectation_and_show_its_text) {
  EXPECT_EXIT(run_and_exit({RanksAs::threads, 2}, fail_as_rank_one), ExitedWithCode(1), "said by the rank itself");
}

TEST(RanksDeathTest, as_threads_that_hang_end_the_process) {
  EXPECT_EXIT(run_and_exit({.as = RanksAs::threads, .ranks = 2, .limit = std::chrono::seconds(1)}, hang_as_rank_one),
              ExitedWithCode(1), "1 of 2 ranks have not ended after 1 s");
}

TEST(RanksDeathTest, as_processes_that_hang_are_killed_and_fail_the_test) {
  EXPECT_EXIT(run_and_exit({.as = RanksAs::processes, .ranks = 2, .limit = std::chrono::seconds(1)}, hang_as_rank_one),
              ExitedWithCode(1), "process rank 1 has not ended after 1 s");
}

TEST(Ranks, as_processes_fail_the_test_by_their_exit_status) {
  EXPECT_NONFATAL_FAILURE(run_ranks({RanksAs::processes, 2}, [](const Seat& seat) { _exit(seat.rank == 1 ? 3 : 0); }),
                          "process rank 1 ended with exit status 3");
}

TEST(Ranks, as_processes_fail_the_test_by_a_death_that_was_not_asked_for) {
  const auto body = [](const Seat& seat) {
    if (seat.rank == 1) kill(getpid(), SIGKILL);
  };
  EXPECT_NONFATAL_FAILURE(run_ranks({RanksAs::processes, 2}, body), "process rank 1 was ended by signal 9");
}

TEST(Ranks, as_processes_fail_the_test_by_surviving_what_should_have_killed_them) {
  EXPECT_NONFATAL_FAILURE(run_ranks({.as = RanksAs::processes, .ranks = 2, .killed = 1}, [](const Seat&) {}),
                          "rank 1 should have been killed");
}

TEST(Ranks, all_run_and_share_a_whiteboard) {
  for (const RanksAs kind : every_kind())
    run_ranks({kind, 4}, [](const Seat& seat) {
      seat.board.notes[seat.rank] = 1 + seat.rank;
      seat.meet();
      for (int rank = 0; rank < seat.ranks; ++rank) EXPECT_EQ(seat.board.notes[rank], 1 + rank);
    });
}

}  // namespace
}  // namespace fccl::testing
