// The wire phases: every collective, by every algorithm and beside the entries, over networks kind and unkind.
#include <gtest/gtest.h>

#include <bit>

#include "wire/bent_transport.h"
#include "wire/calls.h"

namespace fccl::core::testing {
namespace {

class WirePhase : public ::testing::TestWithParam<Way> {
 protected:
  bool fits(const Calls& calls, const Group& group) const {
    if (calls.way.algorithm != "entries") return true;
    return calls.count * size_of(calls.dtype) <= group.shape().payload_bytes;
  }
  Calls calls_of(size_t count, int times = 3) const {
    return {.way = GetParam(), .dtype = fcclInt32, .op = ReduceOp::sum, .count = count, .times = times};
  }
};

TEST_P(WirePhase, is_right_for_any_number_of_members_and_every_root) {
  for (const int members : {1, 2, 3, 4, 5, 8}) {
    Group group({.members = members});
    for (int root = 0; root < members; ++root) {
      Calls calls = calls_of(37, 2);
      calls.root = root;
      ASSERT_TRUE(run_calls(group, calls)) << members << " members, root " << root;
    }
  }
}

// Twelve bytes of each member fit beside the entries of up to 40.
TEST_P(WirePhase, is_right_by_dissemination) {
  for (const int members : {4, 5, 6, 7, 9, 13, 16}) {
    Group group({.members = members});
    for (const int root : {0, members / 2, members - 1}) {
      Calls calls = calls_of(3, 3);
      calls.root = root;
      calls.in_place = members % 2 == 0;
      ASSERT_TRUE(run_calls(group, calls)) << members << " members, root " << root;
    }
  }
}

// A slot has 1024 bytes, a window 4 messages, so that slices end at multiples of 256 elements.
TEST_P(WirePhase, is_right_for_sizes_around_the_edges_of_slices_and_windows) {
  Group group({.members = 3});
  for (const size_t count : {0, 1, 63, 64, 255, 256, 257, 512, 1023, 1024, 1025, 3 * 1024 + 1, 9999}) {
    const Calls calls = calls_of(count, 2);
    if (!fits(calls, group)) continue;
    ASSERT_TRUE(run_calls(group, calls));
  }
}

TEST_P(WirePhase, is_right_in_place) {
  Group group({.members = 3});
  for (const size_t count : {1, 64, 2500}) {
    Calls calls = calls_of(count);
    calls.in_place = true;
    if (!fits(calls, group)) continue;
    ASSERT_TRUE(run_calls(group, calls));
  }
}

// Their numbers start below the wrap of 8, 32 and 64 bits.
TEST_P(WirePhase, is_right_for_many_calls_in_a_row) {
  Group group({.members = 3});
  Calls calls = calls_of(60, 400);
  ASSERT_TRUE(run_calls(group, calls));
}

TEST_P(WirePhase, is_right_with_a_window_of_one_message) {
  Group group({.members = 4, .window = 1, .stages = 1});
  for (const size_t count : {1, 1200}) {
    const Calls calls = calls_of(count);
    if (!fits(calls, group)) continue;
    ASSERT_TRUE(run_calls(group, calls));
  }
}

// Ten thousand elements of 4 bytes, in slots of 128 KiB, take stripes on both rails.
TEST_P(WirePhase, is_right_over_several_rails) {
  simulated::FabricOptions options;
  options.limits.rails = 3;
  options.limits.write_bytes = 20000;
  Group group({.members = 3, .slot_bytes = 128 << 10}, options);
  for (const size_t count : {5, 10000, 40000}) {
    const Calls calls = calls_of(count);
    if (!fits(calls, group)) continue;
    ASSERT_TRUE(run_calls(group, calls));
  }
}

TEST_P(WirePhase, is_right_between_members_with_unequal_numbers_of_rails) {
  simulated::FabricOptions options;
  options.limits.rails = 3;
  Group group({.members = 3, .slot_bytes = 128 << 10}, options, [](int member, std::unique_ptr<Transport> transport) {
    auto bent = std::make_unique<BentTransport>(std::move(transport));
    bent->shown.rails = 1 + member;
    bent->shown.write_bytes = 9000 + 1000 * static_cast<size_t>(member);
    return bent;
  });
  for (const size_t count : {5, 40000}) {
    const Calls calls = calls_of(count, 2);
    if (!fits(calls, group)) continue;
    ASSERT_TRUE(run_calls(group, calls));
  }
}

TEST(WireEntriesTest, of_a_short_call_are_the_logarithm_of_the_members_for_each_of_them) {
  for (const int members : {2, 3, 4, 5, 8, 16, 33, 64}) {
    Group group({.members = members});
    const uint64_t before = group.fabric().counts().operations.load();
    ASSERT_TRUE(run_calls(group, {.way = {fcclCollAllReduce, "entries"}, .dtype = fcclInt64, .count = 1, .times = 3}));
    const auto rounds = static_cast<uint64_t>(std::bit_width(static_cast<unsigned>(members - 1)));
    EXPECT_EQ(group.fabric().counts().operations.load() - before, 3 * rounds * static_cast<uint64_t>(members)) << members;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, WirePhase, ::testing::ValuesIn(all_ways()), [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace fccl::core::testing
