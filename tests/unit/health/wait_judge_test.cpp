// Tests of what the slow path of a wait finds out.
#include "health/wait_judge.h"

#include <thread>

#include "health/call_numbers.h"
#include "health/wait.h"
#include "host_link/link_messages.h"
#include "segment/rank_state.h"
#include "unit/health/ranks_of_one_host.h"

namespace fccl::core {
namespace {

using namespace std::chrono_literals;

// Rank 0 of three ranks, in a call for which rank 1 does not come.
class WaitJudgeTest : public RanksOfOneHost {
 protected:
  Awaited slice(uint64_t number, int rank = 1) const {
    return {&segment->board(rank, kGatherLane).published.value, number, rank};
  }
  // The message of the error that `rank` gets while it waits for `other`, or "".
  std::string look(int rank, Wait& wait, int other) {
    const Result<void> looked = controls[rank]->judge.look(wait, slice(1, other));
    return looked ? "" : looked.error().message;
  }
};

TEST_F(WaitJudgeTest, fails_a_wait_that_lasts_longer_than_the_timeout) {
  Wait wait{task, 50ms};
  EXPECT_TRUE(control->judge.look(wait, slice(1)));
  std::this_thread::sleep_for(60ms);
  const Result<void> looked = control->judge.look(wait, slice(1));
  ASSERT_FALSE(looked);
  EXPECT_EQ(looked.error().code, fcclTimeout);
  EXPECT_NE(looked.error().message.find("rank 1 (pid"), std::string::npos) << looked.error().message;
}

TEST_F(WaitJudgeTest, gives_every_wait_of_a_call_the_whole_timeout) {
  Wait wait{task, 50ms};
  for (uint64_t number = 1; number < 6; ++number) {
    EXPECT_TRUE(control->judge.look(wait, slice(number))) << number;
    std::this_thread::sleep_for(30ms);
  }
}

TEST_F(WaitJudgeTest, names_a_rank_that_has_left) {
  Wait wait{task, 10s};
  segment->state(1).left = 1;
  const Result<void> looked = control->judge.look(wait, slice(1));
  ASSERT_FALSE(looked);
  EXPECT_EQ(looked.error().code, fcclRemoteError);
  EXPECT_NE(looked.error().message.find("rank 1"), std::string::npos) << looked.error().message;
}

TEST_F(WaitJudgeTest, looks_once_more_before_it_fails_a_wait_for_a_rank_that_has_left) {
  Wait wait{task, 10s};
  segment->state(1).left = 1;
  segment->board(1, kGatherLane).published.publish(1);
  EXPECT_TRUE(control->judge.look(wait, slice(1)));
}

TEST_F(WaitJudgeTest, names_the_rank_at_the_end_of_a_line_of_waits) {
  Wait first{task, 60ms}, second{task, 10s};
  EXPECT_EQ(look(0, first, 1), "");
  std::this_thread::sleep_for(70ms);
  EXPECT_EQ(look(1, second, 2), "");
  const std::string text = look(0, first, 1);
  EXPECT_NE(text.find("for rank 1 (pid"), std::string::npos) << text;
  EXPECT_NE(text.find("which waits for rank 2 (pid"), std::string::npos) << text;
}

// Ranks 0 and 1 of this host, rank 2 of another one.
TEST_F(WaitJudgeTest, names_the_rank_for_which_a_rank_of_another_host_says_that_it_waits) {
  auto peers = all_peers();
  peers[2] = {{2, getpid(), {}, "there", {}, {}}, nullptr, -1};
  Control here("", 0, peers, segment);
  Wait wait{task, 50ms};
  here.judge.hear_of_wait({.rank = 2, .awaited = 1});
  EXPECT_TRUE(here.judge.look(wait, slice(1, 2)));
  std::this_thread::sleep_for(60ms);
  const Result<void> looked = here.judge.look(wait, slice(1, 2));
  ASSERT_FALSE(looked);
  EXPECT_NE(looked.error().message.find("for rank 2 (pid"), std::string::npos) << looked.error().message;
  EXPECT_NE(looked.error().message.find("which waits for rank 1 (pid"), std::string::npos) << looked.error().message;
}

TEST_F(WaitJudgeTest, names_a_rank_of_another_host_whose_long_wait_is_over) {
  auto peers = all_peers();
  peers[2] = {{2, getpid(), {}, "there", {}, {}}, nullptr, -1};
  Control here("", 0, peers, segment);
  Wait wait{task, 50ms};
  here.judge.hear_of_wait({.rank = 2, .awaited = 1});
  here.judge.hear_of_wait({.rank = 2, .awaited = kNobody});
  EXPECT_TRUE(here.judge.look(wait, slice(1, 2)));
  std::this_thread::sleep_for(700ms);
  const Result<void> looked = here.judge.look(wait, slice(1, 2));
  ASSERT_FALSE(looked);
  EXPECT_EQ(looked.error().message.find("which waits for"), std::string::npos) << looked.error().message;
}

TEST_F(WaitJudgeTest, tells_for_whom_it_waits_after_half_its_timeout_until_the_wait_is_over) {
  Wait wait{task, 100ms};
  EXPECT_TRUE(control->judge.look(wait, slice(1, 2)));
  const auto awaited = [this] { return control->judge.local_waits().front().awaited; };
  EXPECT_EQ(awaited(), kNobody);
  std::this_thread::sleep_for(60ms);
  (void)control->judge.look(wait, slice(1, 2));
  EXPECT_EQ(awaited(), 2);
  control->judge.end_wait(wait);
  EXPECT_EQ(awaited(), kNobody);
}

TEST_F(WaitJudgeTest, names_the_awaited_rank_if_it_waited_for_another_one_long_ago) {
  Wait first{task, 200ms}, second{task, 10s};
  EXPECT_EQ(look(1, second, 2), "");
  EXPECT_EQ(look(0, first, 1), "");
  std::this_thread::sleep_for(210ms);
  const std::string text = look(0, first, 1);
  EXPECT_NE(text.find("for rank 1 (pid"), std::string::npos) << text;
  EXPECT_EQ(text.find("which waits for"), std::string::npos) << text;
}

TEST_F(WaitJudgeTest, looks_once_more_before_it_fails_a_wait_that_was_itself_stopped) {
  Wait wait{task, 50ms};
  EXPECT_TRUE(control->judge.look(wait, slice(1)));
  std::this_thread::sleep_for(60ms);
  segment->board(1, kGatherLane).published.publish(1);
  EXPECT_TRUE(control->judge.look(wait, slice(1)));
}

TEST_F(WaitJudgeTest, says_after_five_seconds_who_is_waited_for_in_which_call_and_says_it_once) {
  ::testing::internal::CaptureStderr();
  Wait wait{task, 60s};
  wait.awaited = slice(1);
  wait.began = Clock::now() - 6s;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(control->judge.look(wait, slice(1)));
  const std::string log = ::testing::internal::GetCapturedStderr();
  const std::string line = "rank 0 has waited 6 s for rank 1 (pid ";
  const size_t at = log.find(line);
  ASSERT_NE(at, std::string::npos) << log;
  EXPECT_NE(log.find("AllGather of 4096 int8 (call 0)", at), std::string::npos) << log;
  EXPECT_EQ(log.find(line, at + 1), std::string::npos) << log;
}

TEST_F(WaitJudgeTest, says_how_far_a_late_rank_is_with_a_call_on_cuda_memory) {
  const auto text_of_late_wait = [&] {
    Wait wait{later, 50ms};
    wait.awaited = slice(1);
    wait.began = Clock::now() - 1s;
    const Awaited awaited = slice(1);
    const std::string text = control->judge.look(wait, awaited).error().message;
    segment->failure().first = 0;
    return text;
  };
  EXPECT_EQ(text_of_late_wait().find(", and it "), std::string::npos) << "of CPU memory";
  controls[1]->calls.say_issued(kFirstNumber);
  EXPECT_NE(text_of_late_wait().find(", and it has not issued this one"), std::string::npos);
  controls[1]->calls.say_issued(kFirstNumber + 9);
  controls[1]->calls.say_begun(kGatherLane, kFirstNumber);
  controls[1]->calls.say_begun(kPairLane, kFirstNumber + 9);
  EXPECT_NE(text_of_late_wait().find("but its CUDA stream has not come to it"), std::string::npos);
  controls[1]->calls.say_begun(kGatherLane, kFirstNumber + 5);
  EXPECT_NE(text_of_late_wait().find(", and it is at work on this one"), std::string::npos);
}

TEST_F(WaitJudgeTest, ends_a_wait_that_is_no_longer_wanted_for_every_rank) {
  Wait wait{task, 10s};
  control->judge.ask([]() -> Result<void> { return fail(fcclAborted, "not wanted"); });
  EXPECT_EQ(look(0, wait, 1), "not wanted");
  Wait other{task, 10s};
  EXPECT_EQ(look(2, other, 1), "not wanted");
}

}  // namespace
}  // namespace fccl::core
