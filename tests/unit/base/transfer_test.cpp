// Tests of transfers: their descriptions, and which of them share an order.
#include "base/transfer.h"

#include <gtest/gtest.h>

namespace fccl::core {
namespace {

TransferEnd end_of(Direction direction, int peer, int tag) {
  return {direction, peer, {tag, fcclFloat32, 1024}, nullptr, nullptr, nullptr};
}

TEST(TransferText, names_the_peer_and_the_tag_if_there_is_one) {
  EXPECT_EQ(describe(end_of(Direction::send, 3, kUntagged)), "Send of 1024 float32 to rank 3");
  EXPECT_EQ(describe(end_of(Direction::receive, 0, 7)), "Recv of 1024 float32 from rank 0 with tag 7");
  EXPECT_EQ(describe(end_of(Direction::receive, FCCL_ANY_SOURCE, 0)), "Recv of 1024 float32 from any rank with tag 0");
}

TEST(TransferOrder, is_that_of_a_peer_a_direction_and_a_tag) {
  const TransferEnd end = end_of(Direction::receive, 1, 5);
  EXPECT_TRUE(end.shares_order_with(end_of(Direction::receive, 1, 5)));
  EXPECT_TRUE(end.shares_order_with(end_of(Direction::receive, FCCL_ANY_SOURCE, 5)));
  EXPECT_FALSE(end.shares_order_with(end_of(Direction::send, 1, 5)));
  EXPECT_FALSE(end.shares_order_with(end_of(Direction::receive, 2, 5)));
  EXPECT_FALSE(end.shares_order_with(end_of(Direction::receive, 1, 6)));
}

TEST(TransferEnd, of_a_receive_takes_its_tag_from_its_source_or_from_any) {
  EXPECT_TRUE(end_of(Direction::receive, 1, 5).takes(1, 5));
  EXPECT_FALSE(end_of(Direction::receive, 1, 5).takes(2, 5));
  EXPECT_FALSE(end_of(Direction::receive, 1, 5).takes(1, kUntagged));
  EXPECT_TRUE(end_of(Direction::receive, FCCL_ANY_SOURCE, 5).takes(2, 5));
}

}  // namespace
}  // namespace fccl::core
