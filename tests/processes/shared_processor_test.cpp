// Ranks that have a processor each, but are on the same one for a while, as the scheduler puts ranks that nobody binds.
#include <sched.h>

#include <thread>

#include "processes/size.h"
#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

constexpr int kCalls = 300;

void stay_on(int processor) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(processor, &only);
  EXPECT_EQ(sched_setaffinity(0, sizeof only, &only), 0);
}

// A rank that spins keeps the awaited rank from running, and uses half a millisecond of the processor for each call. The
// processor's time is what is measured, since other processes may want that processor, too.
TEST(RanksOnOneProcessor, give_it_to_each_other_at_once) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one processor: ranks know from the start that they share it";
  run_ranks({RanksAs::processes, 2}, [](const Seat& seat) {
    const Comm comm(seat);
    if (seat.rank == 0) seat.board.notes[0] = sched_getcpu();
    seat.meet();
    stay_on(static_cast<int>(seat.board.notes[0]));
    const double began = processor_seconds();
    for (int call = 0; call < kCalls; ++call) {
      const auto trial = trial_of(fcclCollAllReduce, 100, seat, call);
      EXPECT_TRUE(succeeded(trial->issue(comm)));
      EXPECT_EQ(trial->fault(), "");
    }
    EXPECT_LT((processor_seconds() - began) / kCalls, 150e-6 * kSlowdown);
  });
}

}  // namespace
}  // namespace fccl::core::testing
