// Tests the choice of a path by size, by collective, and by what the lane's ranks can do.
#include "host/path.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "host/lane.h"
#include "segment/peer_memory.h"

namespace fccl::core {
namespace {

constexpr size_t kMailbox = 4096;
constexpr size_t kBox = 2 * kMailbox;  // between two ranks
constexpr size_t kAttached = 2 * kBox;

Call bytes_of(fcclColl_t collective, size_t bytes) { return {{collective, fcclInt8, ReduceOp::sum, -1, bytes}}; }

class ChoiceOfPath : public ::testing::Test {
 protected:
  static std::shared_ptr<Segment> segment_of(int ranks) {
    const SegmentShape shape{ranks, kMailbox, 64};
    return *Segment::map(*Segment::make(shape), shape);
  }
  static Path choose(const Call& call, const Lane& of) {
    return route_of({call, of.shape(), of.reach.attaching, of.reach.last_offers, of.box_bytes()}).path;
  }
  static Path choose_alone(size_t bytes) {
    return choose(bytes_of(fcclCollAllGather, bytes), Lane(segment_of(1), kGatherLane, 0, {0}, 1));
  }
  Path choose_for(fcclColl_t collective, size_t bytes) const { return choose(bytes_of(collective, bytes), lane); }
  Path choose_for_blocks(fcclColl_t collective, const std::vector<ByteRange>& blocks) const {
    UnevenBlocks uneven;
    (collective == fcclCollReduceScatterV ? uneven.input : uneven.output).set(blocks);
    Call call = bytes_of(collective, 0);
    call.uneven = &uneven;
    return choose(call, lane);
  }
  void attach() { lane.reach.attach(std::make_unique<PeerMemory>(segment, 0, std::vector<int>(2, getpid())), kAttached); }

  std::shared_ptr<Segment> segment = segment_of(2);
  Lane lane{segment, kGatherLane, 0, {0, 1}, 1};
};

TEST_F(ChoiceOfPath, of_one_rank_is_to_go_alone) { EXPECT_EQ(choose_alone(1 << 20), Path::alone); }

TEST_F(ChoiceOfPath, is_the_mailbox_for_what_fits_and_the_ring_for_more) {
  EXPECT_EQ(choose_for(fcclCollAllGather, kBox), Path::mailbox);
  EXPECT_EQ(choose_for(fcclCollAllGather, kBox + 1), Path::ring);
  EXPECT_EQ(choose_for(fcclCollAllGather, size_t{1} << 30), Path::ring);
}

TEST_F(ChoiceOfPath, is_the_mailbox_for_more_where_ranks_outnumber_processors) {
  lane.use_long_boxes();
  EXPECT_EQ(choose_for(fcclCollAllGather, kMailbox * 8), Path::mailbox);
  EXPECT_EQ(choose_for(fcclCollAllGather, kMailbox * 8 + 1), Path::ring);
}

TEST_F(ChoiceOfPath, is_the_mailbox_for_an_all_to_all_if_all_blocks_of_a_rank_fit) {
  EXPECT_EQ(choose_for(fcclCollAlltoAll, kBox / 2), Path::mailbox);
  EXPECT_EQ(choose_for(fcclCollAlltoAll, kBox / 2 + 1), Path::ring);
}

TEST_F(ChoiceOfPath, is_to_attach_for_an_all_gather_from_the_least_block_of_the_lane_on) {
  attach();
  EXPECT_EQ(choose_for(fcclCollAllGather, kBox), Path::mailbox);
  EXPECT_EQ(choose_for(fcclCollAllGather, kAttached - 1), Path::ring);
  EXPECT_EQ(choose_for(fcclCollAllGather, kAttached), Path::attach);
  EXPECT_EQ(choose_for(fcclCollAllGather, size_t{1} << 30), Path::attach);
}

TEST_F(ChoiceOfPath, is_to_attach_for_an_all_to_all_of_equal_counts_as_for_an_all_gather) {
  attach();
  EXPECT_EQ(choose_for(fcclCollAlltoAll, kAttached - 1), Path::ring);
  EXPECT_EQ(choose_for(fcclCollAlltoAll, kAttached), Path::attach);
  lane.reach.attaching.least_block = 2 * kAttached;
  EXPECT_EQ(choose_for(fcclCollAlltoAll, kAttached), Path::ring);
}

TEST_F(ChoiceOfPath, of_blocks_with_counts_of_their_own_is_by_the_longest_where_each_rank_gives_one) {
  attach();
  EXPECT_EQ(choose_for_blocks(fcclCollAllGatherV, {{0, 0}, {0, kBox}}), Path::mailbox);
  EXPECT_EQ(choose_for_blocks(fcclCollAllGatherV, {{0, 1}, {1, kBox + 1}}), Path::ring);
  EXPECT_EQ(choose_for_blocks(fcclCollAllGatherV, {{0, 1}, {1, kAttached}}), Path::attach);
}

TEST_F(ChoiceOfPath, of_blocks_with_counts_of_their_own_is_by_their_sum_where_each_rank_gives_all) {
  EXPECT_EQ(choose_for_blocks(fcclCollReduceScatterV, {{0, 1}, {1, kBox - 1}}), Path::mailbox);
  EXPECT_EQ(choose_for_blocks(fcclCollReduceScatterV, {{0, 1}, {1, kBox}}), Path::ring);
}

TEST_F(ChoiceOfPath, of_an_exchange_of_uneven_blocks_is_the_mailbox_since_nobody_knows_what_others_have) {
  EXPECT_EQ(choose_for_blocks(fcclCollAlltoAllV, {{0, size_t{1} << 30}, {0, 0}}), Path::mailbox);
}

TEST_F(ChoiceOfPath, is_the_ring_for_every_other_collective) {
  attach();
  for (const fcclColl_t collective : {fcclCollBroadcast, fcclCollGather, fcclCollScatter})
    EXPECT_EQ(choose_for(collective, kAttached), Path::ring) << name_of(collective);
}

TEST_F(ChoiceOfPath, is_the_ring_again_once_a_rank_was_found_that_cannot_attach) {
  attach();
  lane.reach.attaching.is_open = false;
  EXPECT_EQ(choose_for(fcclCollAllGather, kAttached), Path::ring);
}

}  // namespace
}  // namespace fccl::core
