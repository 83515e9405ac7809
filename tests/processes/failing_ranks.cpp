// Tests that fail, to see that a rank's failure fails its test and shows what the rank said.
#include <stdexcept>
#include <thread>

#include "processes/ranks.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

void expect_something_else(RanksAs kind) {
  run_ranks({kind, 2}, [](const Seat& seat) { EXPECT_NE(seat.rank, 1) << "said by the rank itself"; });
}

void throw_something(RanksAs kind) {
  run_ranks({kind, 2}, [](const Seat& seat) {
    if (seat.rank == 1) throw std::runtime_error("thrown by the rank itself");
  });
}

void hang(RanksAs kind) {
  run_ranks({.as = kind, .ranks = 2, .limit = 1s}, [](const Seat& seat) {
    while (seat.rank == 1) std::this_thread::sleep_for(10ms);
  });
}

TEST(FailingRanks, as_threads_that_expect_something_else) { expect_something_else(RanksAs::threads); }
TEST(FailingRanks, as_threads_that_throw) { throw_something(RanksAs::threads); }
TEST(FailingRanks, as_threads_that_hang) { hang(RanksAs::threads); }

#if !defined(FCCL_RANKS_AS_THREADS_ONLY)
TEST(FailingRanks, as_processes_that_expect_something_else) { expect_something_else(RanksAs::processes); }
TEST(FailingRanks, as_processes_that_throw) { throw_something(RanksAs::processes); }
TEST(FailingRanks, as_processes_that_hang) { hang(RanksAs::processes); }
#endif

}  // namespace
}  // namespace fccl::core::testing
