// Collectives between hosts of several ranks: the rounds within each host, and the wire beside them.
#include <gtest/gtest.h>

#include "wire/calls.h"

namespace fccl::core::testing {
namespace {

class Across : public ::testing::TestWithParam<Way> {
 protected:
  // Sizes around the edges of pieces, with the slots of the wire and of the host as wide as each other, or either wider.
  // An odd number of counts: each comes in place and out of place, with slots of one relation or another.
  void expect_right(const std::vector<int>& ranks, std::initializer_list<size_t> counts = {0, 1, 37, 256, 1300}) {
    struct Slots {
      size_t wire, host;
    };
    bool in_place = false;
    for (const Slots slots : {Slots{1024, 1024}, Slots{4096, 256}, Slots{512, 8192}}) {
      Group group({.ranks = ranks, .slot_bytes = slots.wire, .host_slot_bytes = slots.host});
      for (const size_t count : counts) {
        in_place = !in_place;
        const Calls calls{.way = GetParam(),
                          .dtype = fcclInt32,
                          .count = count,
                          .times = 2,
                          .root = static_cast<int>(count) % group.shape().size(),
                          .in_place = in_place,
                          .is_displaced = in_place};
        ASSERT_TRUE(run_calls(group, calls)) << "slots of " << slots.wire << " and " << slots.host;
      }
    }
  }
};

TEST_P(Across, hosts_of_equal_numbers_of_ranks_goes_every_byte) {
  expect_right({2, 2});
  expect_right({3, 3, 3});
}

TEST_P(Across, hosts_of_one_rank_each_goes_every_byte) { expect_right({1, 1, 1}); }

TEST_P(Across, hosts_of_unequal_numbers_of_ranks_goes_every_byte) {
  expect_right({3, 1});
  expect_right({2, 1, 1});
  expect_right({2, 5});
  // Far more ranks than processors, so fewer counts.
  expect_right({4, 2, 3, 2, 2}, {1, 37, 1300});
}

TEST_P(Across, hosts_goes_every_byte_of_every_root) {
  Group group({.ranks = {3, 2}});
  for (int root = 0; root < group.shape().size(); ++root)
    ASSERT_TRUE(run_calls(group, {.way = GetParam(), .dtype = fcclInt32, .count = 700, .times = 1, .root = root}));
}

TEST_P(Across, a_network_worse_than_any_goes_every_byte) {
  simulated::FabricOptions options{.faults = simulated::worse_than_efa(), .seed = 7};
  options.limits.rails = 2;
  options.limits.outstanding = 5;
  Group group({.ranks = {3, 2}}, options);
  for (const size_t count : {3, 900})
    ASSERT_TRUE(run_calls(group, {.way = GetParam(), .dtype = fcclInt32, .count = count, .times = 3, .root = 4}));
}

TEST_P(Across, hosts_goes_every_byte_of_every_pattern_of_counts) {
  if (!is_uneven(GetParam().collective)) return;
  for (const std::vector<int>& ranks : {std::vector{2, 2}, {3, 1}, {1, 1, 1}, {2, 5}}) {
    Group group({.ranks = ranks});
    for (const Shares shares : kEveryShares)
      for (const size_t count : {1, 40, 700})
        ASSERT_TRUE(run_calls(group, {.way = GetParam(), .dtype = fcclInt32, .count = count, .times = 2, .shares = shares}))
            << name_of(shares);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Across, ::testing::ValuesIn(all_ways()), [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace fccl::core::testing
