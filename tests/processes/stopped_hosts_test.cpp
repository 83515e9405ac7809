// Hosts whose processes are stopped in the midst of calls: the others have an error at the deadline that names them.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ranges>
#include <thread>

#include "processes/hosts.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

// Stops these ranks in the midst of calls; all ranks of other hosts have an error at the deadline that names one of them.
void expect_end_by_stopping(const OnHosts& on_hosts, const std::vector<int>& stopped) {
  const int not_stopped = std::ranges::count(stopped, 0) > 0 ? on_hosts.ranks() - 1 : 0;
  for (const size_t count : {3, 2'000'000})
    run_ranks(on_hosts.launch(), [&, count](const Seat& seat) {
      const Comm comm(seat);
      EXPECT_TRUE(succeeded(fcclCommSetTimeout(comm, 400)));
      seat.board.notes[seat.rank] = getpid();
      seat.meet();
      const auto is_elsewhere = [&](int rank) { return on_hosts.host_of[rank] != on_hosts.host_of[stopped[0]]; };
      std::thread stopper;
      if (seat.rank == not_stopped)
        stopper = std::thread([&] {
          std::this_thread::sleep_for(30ms);
          seat.board.notes[100] = now_ns();
          for (const int rank : stopped) kill(static_cast<pid_t>(seat.board.notes[rank]), SIGSTOP);
        });
      const fcclResult_t result = reduce_until_failure(comm, count);
      if (stopper.joinable()) stopper.join();
      EXPECT_EQ(result, fcclTimeout);
      if (is_elsewhere(seat.rank)) {
        EXPECT_TRUE(in_time(seat.board.notes[100], 1400));
        expect_failure(comm, result, fcclTimeout, stopped);
        ++seat.board.notes[101];
      }
      if (seat.rank == not_stopped) {
        const auto others = std::ranges::count_if(std::views::iota(0, seat.ranks), is_elsewhere);
        while (seat.board.notes[101] < others) std::this_thread::sleep_for(1ms);
        for (const int rank : stopped) kill(static_cast<pid_t>(seat.board.notes[rank]), SIGCONT);
      }
      seat.meet();
    });
}

class StoppedHost : public ::testing::TestWithParam<OnHosts> {
  const Setting costs_{"FCCL_COSTS", kDearMessages};
};

TEST_P(StoppedHost, ends_the_others_at_the_deadline_by_name) {
  std::vector<int> last_host;
  for (int rank = 0; rank < GetParam().ranks(); ++rank)
    if (GetParam().host_of[rank] == GetParam().host_of.back()) last_host.push_back(rank);
  expect_end_by_stopping(GetParam(), last_host);
}

INSTANTIATE_TEST_SUITE_P(Of, StoppedHost, ::testing::Values(kThreeAndOne, kFiveHosts), name_of_hosts);
INSTANTIATE_TEST_SUITE_P(Long, StoppedHost, ::testing::Values(kTwoAndOneAndOne), name_of_hosts);

// Its host cannot say meanwhile for whom its other ranks wait.
TEST(StoppedLeader, is_named_and_not_a_rank_of_its_host_that_waits_for_it) { expect_end_by_stopping(kTwoAndTwo, {2}); }

// News pass through its process, and most ranks wait for one that waits for another in turn.
class StoppedHub : public ::testing::TestWithParam<OnHosts> {
  const Setting costs_{"FCCL_COSTS", kDearMessages};
};

TEST_P(StoppedHub, is_named_by_every_other_rank) { expect_end_by_stopping(GetParam(), {0}); }

INSTANTIATE_TEST_SUITE_P(Of, StoppedHub, ::testing::Values(kFourHosts, kSixHosts), name_of_hosts);

}  // namespace
}  // namespace fccl::core::testing
