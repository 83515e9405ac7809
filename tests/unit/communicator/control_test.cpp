// Tests of what the slow path of a wait finds out.
#include "communicator/control.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

namespace fccl {
namespace {

using namespace std::chrono_literals;

// Rank 0 of two ranks of this process, in a call for which rank 1 does not come.
class SlowPathTest : public ::testing::Test {
 protected:
  SlowPathTest() {
    const SegmentShape shape{2, 64, 64};
    segment = *Segment::map(*Segment::make(shape), shape);
    segment->initialise(static_cast<uint32_t>(kFirstNumber));
    std::vector<Peer> peers;
    for (int rank = 0; rank < 2; ++rank) peers.push_back({{rank, getpid(), {}, "here", {}}, *ProcessWatch::of(getpid())});
    control.emplace("", 0, std::move(peers), segment);
  }

  Awaited slice(uint64_t number) const { return {&segment->board(1, kGatherLane).published.value, number, 1}; }

  std::shared_ptr<Segment> segment;
  std::optional<Control> control;
  const Task task{{{fcclCollAllGather, fcclInt8, ReduceOp::sum, -1, 4096}}, kFirstNumber};
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

}  // namespace
}  // namespace fccl
