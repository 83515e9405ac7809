// Tests of who is in which part of a split, in which order, and of a split that fails.
#include "creation/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "ranks_of_one_process.h"

namespace fccl::core {
namespace {

using ::testing::HasSubstr;

class SplitTest : public ::testing::Test {
 protected:
  static constexpr int kRanks = 3;
  struct Choice {
    int color, key;
  };
  struct Place {
    int rank = -1, ranks = 0;
    bool operator==(const Place&) const = default;
  };

  // The place of each rank in its part.
  std::vector<Place> split(const std::vector<Choice>& choices) {
    std::vector<Place> places(kRanks);
    run_as_ranks(kRanks, [&](int rank) {
      Split split(parent.control(rank), rank, kRanks, [&](const Call& call) { return parent.exchange(rank, call); }, {});
      const auto made = split.make(choices[rank].color, choices[rank].key, options);
      ASSERT_TRUE(made) << made.error().message;
      if (*made) places[rank] = {(*made)->control->peers.rank(), (*made)->columns->ranks()};
    });
    return places;
  }

  CreateOptions options;
  Parent parent{kRanks};
};

TEST_F(SplitTest, orders_a_part_by_key) {
  EXPECT_EQ(split({{4, 9}, {4, 5}, {4, 7}}), (std::vector<Place>{{2, 3}, {0, 3}, {1, 3}}));
}

TEST_F(SplitTest, orders_ranks_of_one_key_as_they_were) {
  EXPECT_EQ(split({{4, 1}, {4, 0}, {4, 1}}), (std::vector<Place>{{1, 3}, {0, 3}, {2, 3}}));
}

TEST_F(SplitTest, leaves_out_a_rank_without_a_color) {
  EXPECT_EQ(split({{0, 0}, {-1, 0}, {0, 0}}), (std::vector<Place>{{0, 2}, {}, {1, 2}}));
}

TEST_F(SplitTest, makes_a_part_of_each_color) {
  EXPECT_EQ(split({{0, 0}, {1, 0}, {0, 0}}), (std::vector<Place>{{0, 2}, {0, 1}, {1, 2}}));
}

// Rank 2 chooses the part of rank 1 and does not come.
TEST_F(SplitTest, that_is_cancelled_on_one_rank_fails_the_parent_and_names_the_part) {
  const auto cancelled = []() -> Result<void> { return fail(fcclAborted, "nobody wants it"); };
  run_as_ranks(kRanks, [&](int rank) {
    const auto run = [&](const Call& call) { return parent.exchange(rank, call); };
    if (rank < 2) {
      const auto made = Split(parent.control(rank), rank, kRanks, run, cancelled).make(rank == 1 ? 6 : -1, 0, options);
      EXPECT_EQ(made.has_value(), rank == 0);
      return;
    }
    const std::array<int, 3> choice{6, 0, rank};
    std::array<std::array<int, 3>, kRanks> choices{};
    EXPECT_TRUE(run(exchange_of(Issuer::split, choice.data(), choices.data(), sizeof choice)));
    const fcclUniqueId none{};
    std::array<fcclUniqueId, kRanks> ids{};
    EXPECT_TRUE(run(exchange_of(Issuer::split, &none, ids.data(), sizeof none)));
  });
  const auto failure = parent.control(0).failures.first();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, fcclAborted);
  EXPECT_THAT(failure->message, HasSubstr("in the part of color 6, whose ranks are counted anew from rank 1 (pid"));
}

}  // namespace
}  // namespace fccl::core
