// Tests the counts that --uneven gives: ranks agree, buffers hold them, and checking follows them.
#include "uneven.h"

#include <gtest/gtest.h>

#include <vector>

#include "verify.h"

namespace fccl::perf {
namespace {

constexpr Uneven kEvery[] = {Uneven::linear, Uneven::one_has_all, Uneven::one_has_none, Uneven::random, Uneven::equal};

TEST(Uneven, is_known_by_name) {
  for (const Uneven uneven : kEvery) EXPECT_EQ(find_uneven(name_of(uneven)), uneven);
  EXPECT_EQ(find_uneven("most"), std::nullopt);
}

TEST(Uneven, gathers_and_scatters_the_same_blocks_on_every_rank_within_the_size) {
  for (const Uneven uneven : kEvery)
    for (int ranks = 1; ranks <= 5; ++ranks) {
      const UnevenCounts first = gathered_counts(uneven, 1000, {.rank = 0, .ranks = ranks});
      EXPECT_LE(first.largest, 1000U * static_cast<std::size_t>(ranks));
      std::size_t begin = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const UnevenCounts gathered = gathered_counts(uneven, 1000, {.rank = rank, .ranks = ranks});
        const UnevenCounts scattered = scattered_counts(uneven, 1000, {.rank = rank, .ranks = ranks});
        EXPECT_EQ(gathered.received, first.received);
        EXPECT_EQ(scattered.sent, first.received);
        EXPECT_EQ(gathered.own, begin);
        EXPECT_EQ(scattered.begins, std::vector{begin});
        begin += first.received[static_cast<std::size_t>(rank)];
      }
      EXPECT_EQ(first.largest, begin);
    }
}

TEST(Uneven, has_the_shares_that_its_name_says) {
  const auto shares = [](Uneven uneven) { return gathered_counts(uneven, 60, {.rank = 0, .ranks = 3}).received; };
  EXPECT_EQ(shares(Uneven::linear), (std::vector<std::size_t>{30, 60, 90}));
  EXPECT_EQ(shares(Uneven::one_has_all), (std::vector<std::size_t>{0, 0, 180}));
  EXPECT_EQ(shares(Uneven::one_has_none), (std::vector<std::size_t>{90, 90, 0}));
  EXPECT_EQ(shares(Uneven::equal), (std::vector<std::size_t>{60, 60, 60}));
}

// What rank a sends to rank b is what rank b has from rank a, and lies where b looks for it.
TEST(Uneven, exchanges_blocks_on_which_both_ranks_of_each_pair_agree) {
  for (const Uneven uneven : kEvery)
    for (int ranks = 1; ranks <= 5; ++ranks)
      for (int a = 0; a < ranks; ++a) {
        const UnevenCounts of_a = exchanged_counts(uneven, 1000, {.rank = a, .ranks = ranks});
        std::size_t begin = 0;
        for (int b = 0; b < ranks; ++b) {
          const UnevenCounts of_b = exchanged_counts(uneven, 1000, {.rank = b, .ranks = ranks});
          EXPECT_EQ(of_a.sent[static_cast<std::size_t>(b)], of_b.received[static_cast<std::size_t>(a)]);
          EXPECT_EQ(of_b.begins[static_cast<std::size_t>(a)], begin);
          EXPECT_EQ(of_a.largest, of_b.largest);
          begin += of_a.sent[static_cast<std::size_t>(b)];
        }
        EXPECT_LE(of_a.all_sent(), of_a.largest);
        EXPECT_LE(of_a.all_received(), of_a.largest);
        EXPECT_LE(of_a.largest, 1000U * static_cast<std::size_t>(ranks));
        EXPECT_LE(of_a.busiest, of_a.largest);
      }
}

// The result of rank 1 is put together of all inputs by the counts; then each of its bytes is changed in turn.
TEST(Uneven, is_what_a_result_is_checked_by) {
  constexpr int kRanks = 3;
  const Collective exchange{.collective = fcclCollAlltoAllV,
                            .reduces = false,
                            .rooted = false,
                            .has_blocks = true,
                            .start = nullptr,
                            .origin = [](const Layout& layout, Place, std::size_t block) {
                              return Origin{static_cast<int>(block), layout.uneven->begins[block]};
                            }};
  const auto trial_of = [&](const UnevenCounts& counts, int rank) -> Trial {
    const Layout layout{.count = 7, .send_count = counts.all_sent(), .recv_count = counts.all_received(), .uneven = &counts};
    return {exchange, *find_element_type("uint8"), *find_operator("sum"), nullptr, layout, {.rank = rank, .ranks = kRanks}, 9};
  };
  const UnevenCounts mine = exchanged_counts(Uneven::linear, 7, {.rank = 1, .ranks = kRanks});
  std::vector<std::byte> result;
  for (int from = 0; from < kRanks; ++from) {
    const UnevenCounts theirs = exchanged_counts(Uneven::linear, 7, {.rank = from, .ranks = kRanks});
    std::vector<std::byte> input(theirs.all_sent());
    fill_input(trial_of(theirs, from), input.data());
    const auto begin = input.begin() + static_cast<std::ptrdiff_t>(theirs.sent[0]);
    result.insert(result.end(), begin, begin + static_cast<std::ptrdiff_t>(theirs.sent[1]));
  }
  const Trial trial = trial_of(mine, 1);
  ASSERT_EQ(result.size(), trial.layout.recv_count);
  EXPECT_EQ(count_wrong(trial, result.data()), 0U);
  for (std::byte& each : result) {
    each ^= std::byte{1};
    EXPECT_EQ(count_wrong(trial, result.data()), 1U);
    each ^= std::byte{1};
  }
}

}  // namespace
}  // namespace fccl::perf
