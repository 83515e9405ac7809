// Which sums have a kernel on a GPU, and which one.
#include "device/reduction.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

namespace fccl::core {
namespace {

std::string name_in_full(fcclDataType_t dtype, ReduceOp op, bool widens, size_t sources) {
  return std::string("sum_") + name_of(dtype) + (widens ? "_float32" : "") + "_" + name_of(op) + "_" + std::to_string(sources);
}

TEST(Reduction, has_the_kernel_whose_name_says_type_operator_and_sources) {
  std::set<size_t> seen;
  for (const fcclDataType_t dtype : {fcclFloat32, fcclFloat16, fcclBfloat16})
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::premul_sum})
      for (const bool widens : {false, true})
        for (size_t sources = 2; sources <= 8; ++sources) {
          if (widens && dtype == fcclFloat32) continue;
          const auto kernel = sum_kernel(dtype, op, widens, sources);
          ASSERT_TRUE(kernel);
          EXPECT_EQ(name_of_sum_kernel(*kernel), name_in_full(dtype, op, widens, sources));
          EXPECT_EQ(sources_of_sum_kernel(*kernel), sources);
          seen.insert(*kernel);
        }
  EXPECT_EQ(seen.size(), kSumKernels);
}

TEST(Reduction, of_other_types_operators_and_numbers_of_sources_has_none) {
  EXPECT_FALSE(sum_kernel(fcclInt32, ReduceOp::sum, false, 2));
  EXPECT_FALSE(sum_kernel(fcclFloat64, ReduceOp::sum, false, 2));
  EXPECT_FALSE(sum_kernel(fcclFloat8e4m3, ReduceOp::sum, true, 2));
  EXPECT_FALSE(sum_kernel(fcclFloat32, ReduceOp::sum, true, 2));
  EXPECT_FALSE(sum_kernel(fcclFloat32, ReduceOp::max, false, 2));
  EXPECT_FALSE(sum_kernel(fcclFloat32, ReduceOp::sum, false, 1));
  EXPECT_FALSE(sum_kernel(fcclFloat32, ReduceOp::sum, false, 9));
}

TEST(Reduction, that_multiplies_has_a_factor_for_each_source) {
  const std::array<const std::byte*, 2> addresses{};
  Reduction reduction{.op = ReduceOp::premul_sum, .sources = addresses};
  EXPECT_FALSE(sum_kernel(reduction));
  reduction.factors = addresses;
  EXPECT_TRUE(sum_kernel(reduction));
}

TEST(Reduction, takes_no_more_blocks_than_have_work) {
  const size_t of_a_block = size_t{gpu::kThreadsPerBlock} * 4;
  EXPECT_EQ(blocks_of({.count = 1, .blocks = 8}), 1U);
  EXPECT_EQ(blocks_of({.count = of_a_block, .blocks = 8}), 1U);
  EXPECT_EQ(blocks_of({.count = of_a_block + 1, .blocks = 8}), 2U);
  EXPECT_EQ(blocks_of({.count = 1'000'000, .blocks = 8}), 8U);
}

}  // namespace
}  // namespace fccl::core
