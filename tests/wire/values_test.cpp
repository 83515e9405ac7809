// The value of a sum between hosts: the partials as a tree over the members, to the bit, however it goes.
#include <gtest/gtest.h>

#include "operators.h"
#include "wire/calls.h"

namespace fccl::core::testing {
namespace {

class WireValue : public ::testing::TestWithParam<Way> {};

TEST_P(WireValue, is_that_of_the_tree_over_the_members_for_every_type_and_operator) {
  for (const int members : {2, 3, 7}) {
    Group group({.members = members});
    for (const fcclDataType_t dtype : {fcclFloat32, fcclBfloat16, fcclFloat64, fcclFloat16, fcclInt8, fcclUint64})
      for (const ReduceOp op : kEveryOperator) {
        if (!has_meaning(dtype, op)) continue;
        const size_t count = GetParam().algorithm == "entries" ? 31 : 700;
        const Calls calls{.way = GetParam(), .dtype = dtype, .op = op, .count = count, .times = 1, .root = members - 1};
        ASSERT_TRUE(run_calls(group, calls)) << fccl::core::name_of(dtype) << " " << fccl::core::name_of(op);
      }
  }
}

TEST_P(WireValue, is_that_of_the_trees_over_the_ranks_of_hosts_and_over_hosts) {
  for (const WireType wire : {WireType::call, WireType::float32})
    for (const std::vector<int>& ranks : {std::vector{2, 2}, {3, 1}, {2, 1, 1}}) {
      Group group({.ranks = ranks, .wire_type = wire});
      for (const fcclDataType_t dtype : {fcclFloat32, fcclBfloat16, fcclFloat16, fcclFloat8e4m3, fcclInt32})
        for (const ReduceOp op : kEveryOperator) {
          if (!has_meaning(dtype, op)) continue;
          const size_t count = GetParam().algorithm == "entries" ? 13 : 300;
          const Calls calls{.way = GetParam(), .dtype = dtype, .op = op, .count = count, .times = 1, .root = 1};
          ASSERT_TRUE(run_calls(group, calls)) << fccl::core::name_of(dtype) << " " << fccl::core::name_of(op);
        }
    }
}

// Whatever the slot, and so the slices: every call is compared with the same reference.
TEST_P(WireValue, does_not_depend_on_slots_windows_and_rails) {
  for (const size_t slot_bytes : {64, 320, 4096}) {
    simulated::FabricOptions options;
    options.limits.rails = slot_bytes == 4096 ? 2 : 1;
    Group group({.members = 5, .window = slot_bytes == 64 ? 1 : 8, .slot_bytes = slot_bytes, .payload_bytes = 4000}, options);
    ASSERT_TRUE(run_calls(group, {.way = GetParam(), .dtype = fcclFloat32, .count = 997, .times = 1}));
  }
}

std::vector<Way> reductions() {
  std::vector<Way> ways = all_ways();
  std::erase_if(ways, [](const Way& way) { return !is_reduction(way.collective); });
  return ways;
}

INSTANTIATE_TEST_SUITE_P(Of, WireValue, ::testing::ValuesIn(reductions()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace fccl::core::testing
