// Tests which pieces go through a slot in each turn, and where they lie there.
#include "hierarchical/slot_walk.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace fccl::core {
namespace {

using Walked = std::vector<std::pair<int, size_t>>;

Walked walked(const SlotWalk& walk) {
  Walked pieces;
  for (const auto [item, offset] : walk) pieces.emplace_back(item, offset);
  return pieces;
}

TEST(SlotWalk, lays_the_pieces_of_a_turn_side_by_side) {
  EXPECT_EQ(walked(SlotWalk(5, 3, 0, 64)), (Walked{{0, 0}, {1, 64}, {2, 128}}));
}

TEST(SlotWalk, goes_on_in_the_next_turn_at_the_begin_of_the_slot_and_ends_with_the_last_piece) {
  EXPECT_EQ(walked(SlotWalk(5, 3, 1, 64)), (Walked{{3, 0}, {4, 64}}));
}

TEST(SlotWalk, is_empty_in_a_turn_that_only_longer_columns_need) {
  EXPECT_EQ(walked(SlotWalk(5, 3, 2, 64)), Walked{});
  EXPECT_EQ(walked(SlotWalk(0, 3, 0, 64)), Walked{});
}

}  // namespace
}  // namespace fccl::core
