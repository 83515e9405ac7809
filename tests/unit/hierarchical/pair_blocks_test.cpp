// PairBlocks and CountsExchange: which blocks between pairs of ranks a column carries, in which order, and how long they are.
#include "hierarchical/pair_blocks.h"

#include <gtest/gtest.h>

#include "hierarchical/counts_exchange.h"

namespace fccl::core {
namespace {

using Numbers = std::vector<int>;

// Host 0 has ranks 0 1 3 in two columns, so that column 0 carries the blocks of ranks 0 and 3; host 1 has 2 and 4.
const std::vector<Numbers> kHosts{{0, 1, 3}, {2, 4}};

TEST(PairBlocks, of_a_column_are_from_each_rank_that_it_carries_to_each_of_the_other_host) {
  const Columns columns(kHosts, 0);
  const PairBlocks pairs(columns);
  EXPECT_EQ(pairs.foreign(), (Numbers{2, 4}));
  EXPECT_EQ(pairs.given().begin, (Numbers{0, 0, 4}));  // nothing for its own host
  EXPECT_EQ(pairs.place_given(0, 2), 0);
  EXPECT_EQ(pairs.place_given(0, 4), 1);
  EXPECT_EQ(pairs.place_given(2, 2), 2);
  EXPECT_EQ(pairs.place_given(2, 4), 3);
}

TEST(PairBlocks, that_come_are_from_each_rank_that_the_column_carries_there_to_each_of_this_host) {
  const Columns columns(kHosts, 2);
  const PairBlocks pairs(columns);
  EXPECT_EQ(pairs.taken().begin, (Numbers{0, 4, 4}));
  EXPECT_EQ(pairs.place_taken(0, 0), 0);  // from rank 0
  EXPECT_EQ(pairs.place_taken(0, 1), 1);
  EXPECT_EQ(pairs.place_taken(1, 0), 2);  // from rank 3
  EXPECT_EQ(pairs.given().size(), 3);     // rank 2's own alone, for three ranks
}

TEST(PairBlocks, of_a_rank_without_a_column_are_none_but_it_knows_the_others) {
  const Columns columns(kHosts, 3);
  const PairBlocks pairs(columns);
  EXPECT_EQ(pairs.given().size(), 0);
  EXPECT_EQ(pairs.taken().size(), 0);
  EXPECT_EQ(pairs.foreign(), (Numbers{2, 4}));
}

TEST(PairBlocks, have_the_lengths_that_were_told_and_lie_where_the_user_has_them) {
  const Columns columns(kHosts, 2);
  PairBlocks pairs(columns);
  struct Told {
    uint64_t bytes, other;
  };
  const std::array<Told, 4> told{Told{7, 99}, {0, 99}, {30, 99}, {1, 99}};
  const auto side = [&](const Blocks& blocks) {
    const Pieces pieces{Layout::of_one(sizeof(Told)), 0, sizeof(Told), 1};
    return WireSide{&blocks, pieces, {reinterpret_cast<std::byte*>(const_cast<Told*>(told.data())), {}, sizeof(Told), 1, 0}};
  };
  pairs.read(side(pairs.given()), side(pairs.taken()));
  const std::vector<ByteRange> buffer{{100, 7}, {200, 0}, {0, 0}, {300, 30}, {0, 0}};
  pairs.place_in_buffers(Layout::of_ranges(buffer), Layout::of_ranges(buffer));
  EXPECT_EQ(pairs.given_layout().bytes(0), 7U);
  EXPECT_EQ(pairs.given_layout().offset(0), 100U);
  EXPECT_EQ(pairs.given_layout().bytes(2), 30U);
  EXPECT_EQ(pairs.given_layout().offset(2), 300U);
  EXPECT_EQ(pairs.taken_layout().bytes(3), 1U);
  pairs.set_all(24);
  EXPECT_EQ(pairs.given_layout().bytes(1), 24U);
}

// Two ranks whose exchanges bring each other their memory, as an AlltoAll does.
struct Told {
  UnevenBlocks blocks;
  CountsExchange exchange{2};
  Call call{{fcclCollAlltoAllV, fcclInt8}, nullptr, nullptr, {}, &blocks};
  Call counts;

  Told(size_t to_0, size_t to_1, size_t from_0, size_t from_1) {
    blocks.input.set(std::vector<ByteRange>{{0, to_0}, {to_0, to_1}});
    blocks.output.set(std::vector<ByteRange>{{0, from_0}, {from_0, from_1}});
    counts = exchange.begin(call);
  }
  void bring(const Told& other, int me, int peer) {
    for (const auto& [from, source] : {std::pair{&other, peer}, std::pair<const Told*, int>{this, me}})
      copy_bytes(static_cast<std::byte*>(counts.recv) + counts.output(2).offset(source),
                 static_cast<const std::byte*>(from->counts.send) + from->counts.input(2).offset(me),
                 counts.output(2).bytes(source));
  }
};

TEST(CountsExchange, knows_the_longest_block_of_any_rank) {
  Told first(3, 50, 3, 8), second(8, 900, 50, 900);
  first.bring(second, 0, 1);
  EXPECT_FALSE(first.exchange.compare(first.call));
  EXPECT_EQ(first.exchange.longest(), 900U);
}

TEST(CountsExchange, tells_both_sides_what_the_other_has) {
  Told first(3, 50, 3, 8), second(8, 1, 49, 1);
  first.bring(second, 0, 1);
  second.bring(first, 1, 0);
  const auto here = first.exchange.compare(first.call), there = second.exchange.compare(second.call);
  ASSERT_TRUE(here && there);
  EXPECT_EQ(here->rank, 1);
  EXPECT_EQ(here->expects, 49U);
  EXPECT_EQ(there->rank, 0);
  EXPECT_EQ(there->sends, 50U);
}

}  // namespace
}  // namespace fccl::core
