// Tests that slices cover a buffer without gaps or overlaps.
#include "host/slices.h"

#include <gtest/gtest.h>

#include <array>

namespace fccl::core {
namespace {

TEST(Slices, cover_every_byte_once) {
  for (size_t total = 0; total < 700; ++total) {
    const Slices slices{total, 64};
    size_t covered = 0;
    for (uint64_t k = 0; k < slices.count(); ++k) {
      EXPECT_EQ(slices.offset(k), covered);
      EXPECT_GT(slices.length(k), 0U);
      covered += slices.length(k);
    }
    EXPECT_EQ(covered, total);
  }
}

TEST(Slices, of_nothing_are_none) { EXPECT_EQ((Slices{0, 64}).count(), 0U); }

TEST(Slices, are_empty_past_the_end) {
  const Slices slices{130, 64};
  EXPECT_EQ(slices.count(), 3U);
  EXPECT_EQ(slices.length(2), 2U);
  EXPECT_EQ(slices.length(3), 0U);
  EXPECT_EQ(slices.length(1000), 0U);
}

TEST(SlicedBlocks, end_earlier_where_the_block_is_shorter) {
  const std::array<std::byte, 230> buffer{};
  const SlicedInput blocks{buffer.data(), Layout::of_many(100, 230), 64};
  EXPECT_EQ(blocks.count(), 2U);
  EXPECT_EQ(blocks.at(1, 1) - buffer.data(), 164);
  EXPECT_EQ(blocks.length(1, 1), 36U);
  EXPECT_EQ(blocks.length(2, 0), 30U);
  EXPECT_EQ(blocks.length(2, 1), 0U);
}

}  // namespace
}  // namespace fccl::core
