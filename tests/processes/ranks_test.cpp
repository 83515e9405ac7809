// The launcher: a rank that ends otherwise than expected must fail the test. The complaints of ranks are tested in
// failing_ranks.cpp.
#include "processes/ranks.h"

#include <gtest/gtest-spi.h>
#include <unistd.h>

#include <csignal>

namespace fccl::core::testing {
namespace {

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
  EXPECT_NONFATAL_FAILURE(run_ranks({.as = RanksAs::processes, .ranks = 2, .killed = {1}}, [](const Seat&) {}),
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
}  // namespace fccl::core::testing
