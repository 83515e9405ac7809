// The wire phases over networks that reorder, split, duplicate, delay and are full, one network for each seed.
#include <gtest/gtest.h>

#include "wire/calls.h"

namespace fccl::core::testing {
namespace {

class Seeds : public ::testing::TestWithParam<Way> {};

simulated::FabricOptions network_of(uint64_t seed) {
  simulated::FabricOptions options{.faults = simulated::worse_than_efa(), .seed = seed};
  options.limits.rails = 1 + static_cast<int>(seed % 3);
  options.limits.outstanding = seed % 4 == 0 ? 1 : 5;
  options.limits.write_bytes = 600;
  options.limits.immediate_bits = seed % 5 == 0 ? 12 : 32;
  return options;
}

TEST_P(Seeds, bring_every_byte_and_end) {
  for (uint64_t seed = 1; seed <= FCCL_SEEDS; ++seed) {
    const int members = 2 + static_cast<int>(seed % 5);
    const bool narrow = seed % 4 == 1;
    Group group({.members = members, .window = narrow ? 1 : 4, .stages = narrow ? 1 : 3}, network_of(seed));
    for (const size_t count : {size_t{3}, 30 + seed % 30, 1100 - seed % 100}) {
      const Calls calls{.way = GetParam(),
                        .dtype = fcclInt32,
                        .count = count,
                        .times = 2,
                        .root = static_cast<int>(seed) % members,
                        .in_place = seed % 3 == 0};
      if (GetParam().algorithm == "entries" && count * 4 > group.shape().payload_bytes) continue;
      ASSERT_TRUE(run_calls(group, calls)) << "seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(FCCL_SEEDS_NAME, Seeds, ::testing::ValuesIn(all_ways()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace fccl::core::testing
