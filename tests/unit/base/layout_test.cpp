// Tests of layouts: consecutive blocks that cover a buffer, and one block for all ranks.
#include "base/layout.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/call.h"

namespace fccl::core {
namespace {

TEST(Layout, of_many_blocks_covers_the_buffer_once) {
  for (size_t total = 0; total < 100; ++total) {
    const Layout layout = Layout::of_many(7, total);
    size_t covered = 0;
    for (int block = 0; block < 20; ++block) {
      EXPECT_EQ(layout.offset(block), covered);
      covered += layout.bytes(block);
    }
    EXPECT_EQ(covered, total);
  }
}

TEST(Layout, of_many_blocks_shortens_only_the_last_ones) {
  const Layout layout = Layout::of_many(8, 20);
  EXPECT_EQ(layout.bytes(0), 8U);
  EXPECT_EQ(layout.bytes(1), 8U);
  EXPECT_EQ(layout.bytes(2), 4U);
  EXPECT_EQ(layout.bytes(3), 0U);
  EXPECT_EQ(layout.offset(3), 20U);
  EXPECT_EQ(layout.most(), 8U);
  EXPECT_EQ(layout.total(), 20U);
}

TEST(Layout, of_one_block_is_the_same_for_every_rank) {
  const Layout layout = Layout::of_one(24);
  for (const int rank : {0, 1, 77}) {
    EXPECT_EQ(layout.offset(rank), 0U);
    EXPECT_EQ(layout.bytes(rank), 24U);
  }
  EXPECT_EQ(layout.total(), 24U);
}

TEST(Layout, of_ranges_lies_where_they_say) {
  const std::vector<ByteRange> ranges{{40, 8}, {0, 0}, {10, 24}};
  const Layout layout = Layout::of_ranges(ranges);
  EXPECT_EQ(layout.offset(0), 40U);
  EXPECT_EQ(layout.bytes(1), 0U);
  EXPECT_EQ(layout.offset(2), 10U);
  EXPECT_EQ(layout.bytes(2), 24U);
  EXPECT_EQ(layout.most(), 24U);
  EXPECT_EQ(layout.total(), 32U);
}

TEST(UnevenBuffer, keeps_its_ranges_when_it_is_copied_and_the_first_one_is_filled_again) {
  UnevenBuffer buffer;
  buffer.set(std::vector<ByteRange>{{4, 8}, {20, 1}});
  const UnevenBuffer copy = buffer;
  buffer.set(std::vector<ByteRange>{{0, 1}, {1, 2}});
  EXPECT_EQ(copy.layout().offset(1), 20U);
  EXPECT_EQ(copy.layout().bytes(0), 8U);
  EXPECT_EQ(buffer.layout().offset(1), 1U);
  buffer.set(77);
  EXPECT_EQ(UnevenBuffer(buffer).layout().bytes(5), 77U);
}

TEST(Layout, of_a_call_has_blocks_where_its_row_says_so) {
  const Call gather{{.collective = fcclCollAllGather, .dtype = fcclInt32, .count = 3}};
  EXPECT_EQ(gather.input(4).total(), 12U);
  EXPECT_EQ(gather.input(4).offset(2), 0U);
  EXPECT_EQ(gather.output(4).total(), 48U);
  EXPECT_EQ(gather.output(4).offset(2), 24U);
  const Call scatter{{.collective = fcclCollScatter, .dtype = fcclInt32, .root = 0, .count = 3}};
  EXPECT_EQ(scatter.input(4).offset(3), 36U);
  EXPECT_EQ(scatter.output(4).offset(3), 0U);
}

}  // namespace
}  // namespace fccl::core
