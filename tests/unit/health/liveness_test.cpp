// Tests of which ranks are known to have left or died, and of what a wait for one of them says.
#include "health/liveness.h"

#include <sys/wait.h>

#include <csignal>
#include <thread>

#include "health/call_numbers.h"
#include "health/wait.h"
#include "host_link/link_messages.h"
#include "unit/health/ranks_of_one_host.h"

namespace fccl::core {
namespace {

using namespace std::chrono_literals;

class LivenessTest : public RanksOfOneHost {};

TEST_F(LivenessTest, counts_a_rank_that_has_left_as_left_and_not_as_dead) {
  controls[1]->liveness.leave();
  EXPECT_TRUE(control->liveness.has_left(1));
  EXPECT_EQ(control->liveness.status_of(1), PeerStatus::left);
  EXPECT_EQ(control->liveness.status_of(2), PeerStatus::present);
  EXPECT_TRUE(control->liveness.dead_ranks().empty());
}

TEST_F(LivenessTest, lists_for_the_leader_the_ranks_of_this_host_that_have_left) {
  EXPECT_TRUE(control->liveness.local_departures().empty());
  segment->board(2, kPairLane).boxes[1].record.write({kFirstNumber + 3, task.call.signature, {}});
  controls[2]->liveness.leave();
  const auto departures = control->liveness.local_departures();
  ASSERT_EQ(departures.size(), 1);
  EXPECT_EQ(departures[0].rank, 2);
  EXPECT_EQ(departures[0].how, PeerStatus::left);
  EXPECT_EQ(departures[0].last_call, kFirstNumber + 3);
}

// Many ranks of this process, of which one is a process that has ended.
TEST(DeathsByTurns, are_found_in_the_turn_of_the_rank_that_died_and_by_a_look_at_all_at_once) {
  constexpr int kRanks = 150, kDead = 140;
  const pid_t child = fork();
  if (child == 0)
    while (true) pause();
  const SegmentShape shape{kRanks, 64, 64, kRanks};
  const auto segment = *Segment::map(*Segment::make(shape), shape);
  segment->initialise(static_cast<uint32_t>(kFirstNumber));
  std::vector<Peer> peers;
  for (int rank = 0; rank < kRanks; ++rank) {
    const pid_t pid = rank == kDead ? child : getpid();
    peers.push_back({{rank, pid, {}, "here", {}, {}}, *ProcessWatch::of(pid), rank});
  }
  Control by_turns("", 0, peers, segment);
  for (int turn = 0; turn < 6; ++turn) by_turns.liveness.look_for_some_deaths();
  EXPECT_FALSE(by_turns.failures.has_failed());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  by_turns.liveness.look_for_some_deaths();
  by_turns.liveness.look_for_some_deaths();
  EXPECT_FALSE(by_turns.failures.has_failed());
  by_turns.liveness.look_for_some_deaths();
  ASSERT_TRUE(by_turns.failures.has_failed());
  EXPECT_NE(by_turns.failures.first()->message.find("rank 140 (pid"), std::string::npos) << by_turns.failures.first()->message;

  const auto other = *Segment::map(*Segment::make(shape), shape);
  other->initialise(static_cast<uint32_t>(kFirstNumber));
  Control at_once("", 0, std::move(peers), other);
  at_once.liveness.look_for_deaths();
  EXPECT_TRUE(at_once.failures.has_failed());
}

// Ranks 0 and 1 are here, ranks 2 and 3 on another host.
class RanksOfTwoHosts : public ::testing::Test {
 protected:
  RanksOfTwoHosts() {
    const SegmentShape shape{2, 64, 64, 4};
    segment = *Segment::map(*Segment::make(shape), shape);
    segment->initialise(static_cast<uint32_t>(kFirstNumber));
    std::vector<Peer> peers;
    for (int rank = 0; rank < 4; ++rank) {
      const bool here = rank < 2;
      peers.push_back({{rank, 100 + rank, here ? 0 : 1, here ? "here" : "there", {}, {}},
                       here ? *ProcessWatch::of(getpid()) : nullptr,
                       here ? rank : -1});
    }
    control = std::make_unique<Control>("", 0, std::move(peers), segment);
  }

  // The error of a wait for rank 3 whose deadline passes.
  Error wait_for_3(std::chrono::milliseconds timeout = 50ms) {
    Wait wait{task, timeout};
    const Awaited never{&never_written, 1, 3};
    for (const auto deadline = Deadline::after(5s); !deadline.passed(); std::this_thread::sleep_for(1ms))
      if (const Result<void> looked = control->judge.look(wait, never); !looked) return looked.error();
    return {fcclSuccess, "it goes on"};
  }

  std::atomic<uint64_t> never_written{0};
  std::shared_ptr<Segment> segment;
  std::unique_ptr<Control> control;
  const Task task{{{fcclCollAllGather, fcclInt8, ReduceOp::sum, -1, 4096}}, kFirstNumber};
};

TEST_F(RanksOfTwoHosts, a_rank_whose_leader_broke_off_is_out_of_reach) {
  control->liveness.hear_of_end(2, LinkEnd::broken);
  const Error error = wait_for_3();
  EXPECT_EQ(error.code, fcclRemoteError);
  EXPECT_NE(error.message.find("rank 2 (pid 102 on there) died, through whom rank 3 (pid 103 on there) was heard of"),
            std::string::npos)
      << error.message;
}

TEST_F(RanksOfTwoHosts, a_rank_whose_leader_left_and_then_broke_off_is_waited_for_and_said_to_be_unheard_of) {
  control->liveness.hear_of_departure({2, PeerStatus::left, kFirstNumber});
  control->liveness.hear_of_end(2, LinkEnd::broken);
  const Error error = wait_for_3();
  EXPECT_EQ(error.code, fcclTimeout);
  EXPECT_NE(error.message.find("nothing has been heard of rank 3 since rank 2 (pid 102 on there), through whom"),
            std::string::npos)
      << error.message;
}

TEST_F(RanksOfTwoHosts, a_rank_that_left_before_its_leader_has_left_for_good) {
  control->liveness.hear_of_departure({3, PeerStatus::left});
  control->liveness.hear_of_end(2, LinkEnd::goodbye);
  const Error error = wait_for_3();
  EXPECT_EQ(error.code, fcclRemoteError);
  EXPECT_NE(error.message.find("rank 3 (pid 103 on there) has finalized or destroyed"), std::string::npos) << error.message;
}

// Rank 3 may wait for rank 2 in turn, and nobody may tell of that.
TEST_F(RanksOfTwoHosts, a_rank_that_left_before_the_call_ends_a_wait_for_another_one) {
  control->liveness.hear_of_departure({2, PeerStatus::left, kFirstNumber - 1});
  const Error error = wait_for_3(4s);
  EXPECT_EQ(error.code, fcclRemoteError);
  EXPECT_NE(error.message.find("rank 2 (pid 102 on there) has finalized or destroyed the communicator while rank 0 waited for "
                               "rank 3 (pid 103 on there)"),
            std::string::npos)
      << error.message;
}

TEST_F(RanksOfTwoHosts, a_rank_that_left_after_it_had_made_the_call_ends_no_wait_for_another_one) {
  control->liveness.hear_of_departure({2, PeerStatus::left, kFirstNumber});
  EXPECT_EQ(wait_for_3(700ms).code, fcclTimeout);
}

TEST_F(RanksOfTwoHosts, a_rank_of_which_another_leader_told_is_unheard_of_when_that_has_left) {
  control->liveness.hear_of_departure({0, PeerStatus::left});
  control->liveness.hear_no_more(2, 0);
  const Error error = wait_for_3();
  EXPECT_EQ(error.code, fcclTimeout);
  EXPECT_NE(error.message.find("since rank 0 (pid 100 on here), through whom"), std::string::npos) << error.message;
}

TEST_F(RanksOfTwoHosts, a_rank_that_died_on_another_host_is_dead_once_its_leader_has_said_so) {
  EXPECT_TRUE(control->liveness.dead_ranks().empty());
  control->liveness.hear_of_departure({3, PeerStatus::died});
  EXPECT_EQ(control->liveness.dead_ranks(), std::vector{3});
}

}  // namespace
}  // namespace fccl::core
