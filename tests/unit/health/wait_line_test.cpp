// Tests of lines of waits that lead to ranks of other hosts.
#include "health/wait_line.h"

#include "health/peers.h"
#include "segment/rank_state.h"
#include "unit/health/ranks_of_one_host.h"

namespace fccl::core {
namespace {

using namespace std::chrono_literals;

// Ranks 0 and 1 of this host, rank 2 of another one.
class WaitLineTest : public RanksOfOneHost {
 protected:
  // The segment was made for the ranks of this host.
  WaitLineTest() { segment->awaited_beyond(2) = -1; }
  static std::vector<Peer> ranks_of_two_hosts() {
    auto peers = all_peers();
    peers[2] = {{2, getpid(), {}, "there", {}, {}}, nullptr, -1};
    return peers;
  }
  void wait(int rank, int awaited) { segment->state(rank).set_waiting(kGatherLane, {to_ms(Clock::now()), awaited}); }
  void tell(int rank, Clock::time_point at, const LineEnd& end) {
    segment->line_beyond(rank) = ToldLine{to_ms(at), end}.packed();
  }
  LineEnd end_of(int first) const { return line.end_of(first, {kGatherLane, 2s}); }

  const Peers peers{0, ranks_of_two_hosts(), segment};
  WaitLine line{peers};
};

TEST_F(WaitLineTest, ends_where_a_rank_of_another_host_says) {
  line.hear(2, {2, LineState::late});
  EXPECT_EQ(end_of(2).rank, 2);
  EXPECT_EQ(end_of(2).state, LineState::late);
  wait(1, 2);
  EXPECT_EQ(end_of(1).rank, 2);
  EXPECT_EQ(end_of(1).state, LineState::late);
}

TEST_F(WaitLineTest, goes_on_where_a_rank_of_another_host_names_one_of_this_host) {
  line.hear(2, {1, LineState::open});
  EXPECT_EQ(end_of(2).rank, 1);
}

TEST_F(WaitLineTest, is_a_circle_where_it_comes_back) {
  line.hear(2, {0, LineState::open});
  EXPECT_EQ(end_of(2).state, LineState::circle);
  line.hear(2, {1, LineState::open});
  wait(1, 2);
  EXPECT_EQ(end_of(2).state, LineState::circle);
}

TEST_F(WaitLineTest, forgets_what_was_told_long_ago) {
  tell(2, Clock::now() - 3s, {1, LineState::silent});
  EXPECT_EQ(end_of(2).rank, 2);
  EXPECT_EQ(end_of(2).state, LineState::open);
}

TEST_F(WaitLineTest, has_no_rank_that_there_is_not) {
  line.hear(2, {77, LineState::open});
  EXPECT_EQ(end_of(2).rank, 2);
  EXPECT_EQ(end_of(-1).rank, -1);
}

}  // namespace
}  // namespace fccl::core
