// Tests of what the slow path of a wait finds out.
#include "operations/control.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

namespace fccl::core {
namespace {

using namespace std::chrono_literals;

// Rank 0 of three ranks of this process, in a call for which rank 1 does not come.
class SlowPathTest : public ::testing::Test {
 protected:
  static constexpr int kRanks = 3;

  SlowPathTest() {
    const SegmentShape shape{kRanks, 64, 64};
    segment = *Segment::map(*Segment::make(shape), shape);
    segment->initialise(static_cast<uint32_t>(kFirstNumber));
    for (int rank = 0; rank < kRanks; ++rank) controls.push_back(std::make_unique<Control>("", rank, all_peers(), segment));
    control = controls.front().get();
  }

  static std::vector<Peer> all_peers() {
    std::vector<Peer> peers;
    for (int rank = 0; rank < kRanks; ++rank)
      peers.push_back({{rank, getpid(), {}, "here", {}, {}}, *ProcessWatch::of(getpid()), rank});
    return peers;
  }

  Awaited slice(uint64_t number, int rank = 1) const {
    return {&segment->board(rank, kGatherLane).published.value, number, rank};
  }
  // The message of the error that `rank` gets while it waits for `other`, or "".
  std::string look(int rank, Wait& wait, int other) {
    const Result<void> looked = controls[rank]->look(wait, slice(1, other));
    return looked ? "" : looked.error().message;
  }

  std::shared_ptr<Segment> segment;
  std::vector<std::unique_ptr<Control>> controls;
  Control* control = nullptr;
  const Task task{{{fcclCollAllGather, fcclInt8, ReduceOp::sum, -1, 4096}}, kFirstNumber};
  const Task later{task.call, kFirstNumber + 5};
};

TEST_F(SlowPathTest, fails_a_wait_that_lasts_longer_than_the_timeout) {
  Wait wait{task, 50ms};
  EXPECT_TRUE(control->look(wait, slice(1)));
  std::this_thread::sleep_for(60ms);
  const Result<void> looked = control->look(wait, slice(1));
  ASSERT_FALSE(looked);
  EXPECT_EQ(looked.error().code, fcclTimeout);
  EXPECT_NE(looked.error().message.find("rank 1 (pid"), std::string::npos) << looked.error().message;
}

TEST_F(SlowPathTest, gives_every_wait_of_a_call_the_whole_timeout) {
  Wait wait{task, 50ms};
  for (uint64_t number = 1; number < 6; ++number) {
    EXPECT_TRUE(control->look(wait, slice(number))) << number;
    std::this_thread::sleep_for(30ms);
  }
}

TEST_F(SlowPathTest, names_a_rank_that_has_left) {
  Wait wait{task, 10s};
  segment->state(1).left = 1;
  const Result<void> looked = control->look(wait, slice(1));
  ASSERT_FALSE(looked);
  EXPECT_EQ(looked.error().code, fcclRemoteError);
  EXPECT_NE(looked.error().message.find("rank 1"), std::string::npos) << looked.error().message;
}

TEST_F(SlowPathTest, looks_once_more_before_it_fails_a_wait_for_a_rank_that_has_left) {
  Wait wait{task, 10s};
  segment->state(1).left = 1;
  segment->board(1, kGatherLane).published.publish(1);
  EXPECT_TRUE(control->look(wait, slice(1)));
}

TEST_F(SlowPathTest, names_the_rank_at_the_end_of_a_line_of_waits) {
  Wait first{task, 60ms}, second{task, 10s};
  EXPECT_EQ(look(0, first, 1), "");
  std::this_thread::sleep_for(70ms);
  EXPECT_EQ(look(1, second, 2), "");
  const std::string text = look(0, first, 1);
  EXPECT_NE(text.find("for rank 1 (pid"), std::string::npos) << text;
  EXPECT_NE(text.find("which waits for rank 2 (pid"), std::string::npos) << text;
}

// Ranks 0 and 1 of this host, rank 2 of another one.
TEST_F(SlowPathTest, names_the_rank_for_which_a_rank_of_another_host_says_that_it_waits) {
  auto peers = all_peers();
  peers[2] = {{2, getpid(), {}, "there", {}, {}}, nullptr, -1};
  Control here("", 0, peers, segment);
  Wait wait{task, 50ms};
  here.hear_of_wait({.rank = 2, .awaited = 1});
  EXPECT_TRUE(here.look(wait, slice(1, 2)));
  std::this_thread::sleep_for(60ms);
  const Result<void> looked = here.look(wait, slice(1, 2));
  ASSERT_FALSE(looked);
  EXPECT_NE(looked.error().message.find("for rank 2 (pid"), std::string::npos) << looked.error().message;
  EXPECT_NE(looked.error().message.find("which waits for rank 1 (pid"), std::string::npos) << looked.error().message;
}

TEST_F(SlowPathTest, names_a_rank_of_another_host_whose_long_wait_is_over) {
  auto peers = all_peers();
  peers[2] = {{2, getpid(), {}, "there", {}, {}}, nullptr, -1};
  Control here("", 0, peers, segment);
  Wait wait{task, 50ms};
  here.hear_of_wait({.rank = 2, .awaited = 1});
  here.hear_of_wait({.rank = 2, .awaited = kNobody});
  EXPECT_TRUE(here.look(wait, slice(1, 2)));
  std::this_thread::sleep_for(700ms);
  const Result<void> looked = here.look(wait, slice(1, 2));
  ASSERT_FALSE(looked);
  EXPECT_EQ(looked.error().message.find("which waits for"), std::string::npos) << looked.error().message;
}

TEST_F(SlowPathTest, tells_for_whom_it_waits_after_half_its_timeout_until_the_wait_is_over) {
  Wait wait{task, 100ms};
  EXPECT_TRUE(control->look(wait, slice(1, 2)));
  const auto awaited = [this] { return control->local_waits().front().awaited; };
  EXPECT_EQ(awaited(), kNobody);
  std::this_thread::sleep_for(60ms);
  (void)control->look(wait, slice(1, 2));
  EXPECT_EQ(awaited(), 2);
  control->end_wait(wait);
  EXPECT_EQ(awaited(), kNobody);
}

TEST_F(SlowPathTest, names_the_awaited_rank_if_it_waited_for_another_one_long_ago) {
  Wait first{task, 200ms}, second{task, 10s};
  EXPECT_EQ(look(1, second, 2), "");
  EXPECT_EQ(look(0, first, 1), "");
  std::this_thread::sleep_for(210ms);
  const std::string text = look(0, first, 1);
  EXPECT_NE(text.find("for rank 1 (pid"), std::string::npos) << text;
  EXPECT_EQ(text.find("which waits for"), std::string::npos) << text;
}

TEST_F(SlowPathTest, looks_once_more_before_it_fails_a_wait_that_was_itself_stopped) {
  Wait wait{task, 50ms};
  EXPECT_TRUE(control->look(wait, slice(1)));
  std::this_thread::sleep_for(60ms);
  segment->board(1, kGatherLane).published.publish(1);
  EXPECT_TRUE(control->look(wait, slice(1)));
}

TEST_F(SlowPathTest, says_after_five_seconds_who_is_waited_for_in_which_call_and_says_it_once) {
  ::testing::internal::CaptureStderr();
  Wait wait{task, 60s};
  wait.awaited = slice(1);
  wait.began = Clock::now() - 6s;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(control->look(wait, slice(1)));
  const std::string log = ::testing::internal::GetCapturedStderr();
  const std::string line = "rank 0 has waited 6 s for rank 1 (pid ";
  const size_t at = log.find(line);
  ASSERT_NE(at, std::string::npos) << log;
  EXPECT_NE(log.find("AllGather of 4096 int8 (call 0)", at), std::string::npos) << log;
  EXPECT_EQ(log.find(line, at + 1), std::string::npos) << log;
}

TEST_F(SlowPathTest, says_how_far_a_late_rank_is_with_a_call_on_cuda_memory) {
  const auto text_of_late_wait = [&] {
    Wait wait{later, 50ms};
    wait.awaited = slice(1);
    wait.began = Clock::now() - 1s;
    const Awaited awaited = slice(1);
    const std::string text = control->look(wait, awaited).error().message;
    segment->failure().first = 0;
    return text;
  };
  EXPECT_EQ(text_of_late_wait().find(", and it "), std::string::npos) << "of CPU memory";
  controls[1]->say_issued(kFirstNumber);
  EXPECT_NE(text_of_late_wait().find(", and it has not issued this one"), std::string::npos);
  controls[1]->say_issued(kFirstNumber + 9);
  controls[1]->say_begun(kGatherLane, kFirstNumber);
  controls[1]->say_begun(kPairLane, kFirstNumber + 9);
  EXPECT_NE(text_of_late_wait().find("but its CUDA stream has not come to it"), std::string::npos);
  controls[1]->say_begun(kGatherLane, kFirstNumber + 5);
  EXPECT_NE(text_of_late_wait().find(", and it is at work on this one"), std::string::npos);
}

TEST_F(SlowPathTest, ends_a_wait_that_is_no_longer_wanted_for_every_rank) {
  Wait wait{task, 10s};
  control->ask([]() -> Result<void> { return fail(fcclAborted, "not wanted"); });
  EXPECT_EQ(look(0, wait, 1), "not wanted");
  Wait other{task, 10s};
  EXPECT_EQ(look(2, other, 1), "not wanted");
}

TEST_F(SlowPathTest, keeps_the_first_failure_whoever_raises_another) {
  EXPECT_EQ(controls[2]->raise({fcclTimeout, "first"}).message, "first");
  EXPECT_EQ(controls[1]->raise({fcclAborted, "second"}).message, "first");
  ASSERT_TRUE(controls[0]->failure());
  EXPECT_EQ(controls[0]->failure()->code, fcclTimeout);
  EXPECT_EQ(controls[0]->failure()->message, "first");
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
  for (int turn = 0; turn < 6; ++turn) by_turns.look_for_some_deaths();
  EXPECT_FALSE(by_turns.has_failed());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  by_turns.look_for_some_deaths();
  by_turns.look_for_some_deaths();
  EXPECT_FALSE(by_turns.has_failed());
  by_turns.look_for_some_deaths();
  ASSERT_TRUE(by_turns.has_failed());
  EXPECT_NE(by_turns.failure()->message.find("rank 140 (pid"), std::string::npos) << by_turns.failure()->message;

  const auto other = *Segment::map(*Segment::make(shape), shape);
  other->initialise(static_cast<uint32_t>(kFirstNumber));
  Control at_once("", 0, std::move(peers), other);
  at_once.look_for_deaths();
  EXPECT_TRUE(at_once.has_failed());
}

// Ranks 0 and 1 are here, ranks 2 and 3 on another host.
class BeyondTest : public ::testing::Test {
 protected:
  BeyondTest() {
    const SegmentShape shape{2, 64, 64, 4};
    segment = *Segment::map(*Segment::make(shape), shape);
    segment->initialise(static_cast<uint32_t>(kFirstNumber));
    std::vector<Peer> peers;
    for (int rank = 0; rank < 4; ++rank) {
      const bool here = rank < 2;
      peers.push_back({{rank, 100 + rank, here ? "a" : "b", here ? "here" : "there", {}, {}},
                       here ? *ProcessWatch::of(getpid()) : nullptr,
                       here ? rank : -1});
    }
    control = std::make_unique<Control>("", 0, std::move(peers), segment);
  }

  // The error of a wait for rank 3 whose deadline passes.
  Error wait_for_3() {
    Wait wait{task, 50ms};
    const Awaited never{&never_written, 1, 3};
    for (const auto deadline = Deadline::after(5s); !deadline.passed(); std::this_thread::sleep_for(1ms))
      if (const Result<void> looked = control->look(wait, never); !looked) return looked.error();
    return {fcclSuccess, "it goes on"};
  }

  std::atomic<uint64_t> never_written{0};
  std::shared_ptr<Segment> segment;
  std::unique_ptr<Control> control;
  const Task task{{{fcclCollAllGather, fcclInt8, ReduceOp::sum, -1, 4096}}, kFirstNumber};
};

TEST_F(BeyondTest, a_rank_whose_leader_broke_off_is_out_of_reach) {
  control->hear_of_end(2, LinkEnd::broken);
  const Error error = wait_for_3();
  EXPECT_EQ(error.code, fcclRemoteError);
  EXPECT_NE(error.message.find("rank 2 (pid 102 on there) died, through whom rank 3 (pid 103 on there) was heard of"),
            std::string::npos)
      << error.message;
}

TEST_F(BeyondTest, a_rank_whose_leader_left_and_then_broke_off_is_waited_for_and_said_to_be_unheard_of) {
  control->hear_of_departure(2, PeerStatus::left);
  control->hear_of_end(2, LinkEnd::broken);
  const Error error = wait_for_3();
  EXPECT_EQ(error.code, fcclTimeout);
  EXPECT_NE(error.message.find("nothing has been heard of rank 3 since rank 2 (pid 102 on there), through whom"),
            std::string::npos)
      << error.message;
}

TEST_F(BeyondTest, a_rank_that_left_before_its_leader_has_left_for_good) {
  control->hear_of_departure(3, PeerStatus::left);
  control->hear_of_end(2, LinkEnd::goodbye);
  const Error error = wait_for_3();
  EXPECT_EQ(error.code, fcclRemoteError);
  EXPECT_NE(error.message.find("rank 3 (pid 103 on there) has finalized or destroyed"), std::string::npos) << error.message;
}

TEST_F(BeyondTest, a_rank_of_which_the_hub_told_is_unheard_of_when_that_has_left) {
  control->hear_of_departure(0, PeerStatus::left);
  control->hear_of_end(2, LinkEnd::unheard);
  const Error error = wait_for_3();
  EXPECT_EQ(error.code, fcclTimeout);
  EXPECT_NE(error.message.find("since rank 0 (pid 100 on here), through whom"), std::string::npos) << error.message;
}

TEST_F(SlowPathTest, has_one_text_of_a_failure_that_is_too_long_to_share) {
  const Error raised = control->raise({fcclTimeout, std::string(3000, 'x')});
  EXPECT_EQ(raised.message, controls[1]->failure()->message);
}

TEST_F(SlowPathTest, a_failure_that_was_heard_is_this_hosts_first_one_and_wakes_no_leader) {
  Descriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const int woken = wake.get();
  control->wake_by(std::move(wake));
  control->hear_of_failure({fcclTimeout, "rank 7 is late"});
  eventfd_t count = 0;
  EXPECT_EQ(::eventfd_read(woken, &count), -1);
  ASSERT_TRUE(controls[1]->failure());
  EXPECT_EQ(controls[1]->failure()->message, "rank 7 is late");
}

TEST_F(SlowPathTest, a_failure_that_is_raised_wakes_the_leader) {
  Descriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const int woken = wake.get();
  control->wake_by(std::move(wake));
  (void)control->raise({fcclTimeout, "rank 1 is late"});
  eventfd_t count = 0;
  EXPECT_EQ(::eventfd_read(woken, &count), 0);
}

}  // namespace
}  // namespace fccl::core
