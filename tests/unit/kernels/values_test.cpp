// Checks single reductions against stated values.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/reduce.h"
#include "operators.h"

namespace fccl::core {
namespace {

// Reduces one element by a kernel.
template <class T>
T reduced(fcclDataType_t dtype, ReduceOp op, const std::vector<T>& values, const std::vector<T>& factors = {}) {
  std::vector<const void*> sources(values.size());
  for (size_t s = 0; s < values.size(); ++s) sources[s] = &values[s];
  std::vector<Scalar> scalars(values.size());
  for (size_t s = 0; s < factors.size(); ++s) std::memcpy(&scalars[s].bits, &factors[s], sizeof(T));
  T out;
  reduce_kernel(dtype, op)(&out, sources.data(), static_cast<int>(sources.size()), 1, scalars.data());
  return out;
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr uint32_t kNanBits = 0x7fc00000;

uint32_t reduced_bits(ReduceOp op, const std::vector<float>& values) {
  return std::bit_cast<uint32_t>(reduced(fcclFloat32, op, values));
}

TEST(ReduceKernel, exists_for_every_operator_that_means_something_for_its_type) {
  for (int dtype = 0; dtype < fcclNumTypes; ++dtype)
    for (const ReduceOp op : testing::kEveryOperator)
      EXPECT_EQ(reduce_kernel(static_cast<fcclDataType_t>(dtype), op) != nullptr,
                testing::has_meaning(static_cast<fcclDataType_t>(dtype), op))
          << dtype << " " << name_of(op);
  for (int dtype : {-1, static_cast<int>(fcclNumTypes)})
    EXPECT_EQ(reduce_kernel(static_cast<fcclDataType_t>(dtype), ReduceOp::sum), nullptr) << dtype;
}

TEST(ReduceKernel, with_results_in_float32_exists_for_every_narrow_float_and_operator_and_no_other_type) {
  for (int dtype = -1; dtype <= fcclNumTypes; ++dtype)
    for (const ReduceOp op : testing::kEveryOperator) {
      const bool narrow = dtype == fcclFloat16 || dtype == fcclBfloat16 || dtype == fcclFloat8e4m3 || dtype == fcclFloat8e5m2;
      EXPECT_EQ(float32_kernel(static_cast<fcclDataType_t>(dtype), op) != nullptr, narrow && !testing::is_bitwise(op))
          << dtype << " " << name_of(op);
    }
}

TEST(ReduceKernel, adds_as_a_tree_and_not_as_a_chain) {
  // 1 + 2^-24 rounds to 1, so a chain would never leave 1; the tree adds the small ones first.
  EXPECT_EQ(reduced<float>(fcclFloat32, ReduceOp::sum, {1.0f, 0.0f, 0x1p-24f, 0x1p-24f}), 1.0f + 0x1p-23f);
  // Three sources split as 2 + 1, not as 1 + 2.
  EXPECT_EQ(reduced<float>(fcclFloat32, ReduceOp::sum, {1.0f, 0x1p-24f, 0x1p-24f}), 1.0f);
  EXPECT_EQ(reduced<float>(fcclFloat32, ReduceOp::sum, {0x1p-24f, 0x1p-24f, 1.0f}), 1.0f + 0x1p-23f);
}

TEST(ReduceKernel, multiplies_in_the_same_tree) {
  // A chain from the left would overflow with the second source.
  EXPECT_EQ(reduced<float>(fcclFloat32, ReduceOp::prod, {0x1p100f, 0x1p-100f, 0x1p100f, 0x1p-100f}), 1.0f);
  EXPECT_EQ(reduced<float>(fcclFloat32, ReduceOp::prod, {0x1p-100f, 0x1p100f, 0x1p100f}), 0x1p100f);
  EXPECT_TRUE(std::isnan(reduced<float>(fcclFloat32, ReduceOp::prod, {0x1p100f, 0x1p100f, 0x1p-100f, 0x1p-100f})))
      << "infinity times zero: the pairs come first";
}

TEST(ReduceKernel, rounds_16_bit_sums_once) {
  // 256 + 1 is a tie in bfloat16: rounded after every addition the sum would stay 256.
  const uint16_t two_hundred_fifty_six = 0x4380, one = 0x3f80, two_hundred_fifty_eight = 0x4381;
  EXPECT_EQ(reduced<uint16_t>(fcclBfloat16, ReduceOp::sum, {two_hundred_fifty_six, one, one}), two_hundred_fifty_eight);
  // The sum overflows float16, the average does not.
  EXPECT_EQ(reduced<uint16_t>(fcclFloat16, ReduceOp::avg, {0x7bff, 0x7bff, 0x7bff, 0x7bff}), 0x7bff);
  EXPECT_EQ(reduced<uint16_t>(fcclFloat16, ReduceOp::sum, {0x7bff, 0x7bff, 0x7bff, 0x7bff}), 0x7c00);
}

TEST(ReduceKernel, divides_an_average_by_the_number_of_sources) {
  EXPECT_EQ(reduced<float>(fcclFloat32, ReduceOp::avg, {5.0f, 0.0f, 0.0f}), 5.0f / 3.0f);
  EXPECT_NE(5.0f / 3.0f, 5.0f * (1.0f / 3.0f)) << "this input cannot tell a division from a multiplication";
}

TEST(ReduceKernel, truncates_integer_averages_towards_zero) {
  EXPECT_EQ(reduced<int32_t>(fcclInt32, ReduceOp::avg, {7, 0}), 3);
  EXPECT_EQ(reduced<int32_t>(fcclInt32, ReduceOp::avg, {-7, 0}), -3);
  EXPECT_EQ(reduced<int64_t>(fcclInt64, ReduceOp::avg, {-8, 0, 0}), -2);
  EXPECT_EQ(reduced<int32_t>(fcclInt32, ReduceOp::avg, {INT32_MIN}), INT32_MIN);
  EXPECT_EQ(reduced<int32_t>(fcclInt32, ReduceOp::avg, {INT32_MIN, 0}), INT32_MIN / 2);
  EXPECT_EQ(reduced<int64_t>(fcclInt64, ReduceOp::avg, {INT64_MIN, INT64_MIN}), 0) << "the sum wraps before it is divided";
  EXPECT_EQ(reduced<int8_t>(fcclInt8, ReduceOp::avg, {100, 100}), -28) << "the sum wraps before it is divided";
  EXPECT_EQ(reduced<uint8_t>(fcclUint8, ReduceOp::avg, {200, 100}), 22) << "the sum wraps before it is divided";
  EXPECT_EQ(reduced<uint64_t>(fcclUint64, ReduceOp::avg, {UINT64_MAX, 0}), UINT64_MAX / 2);
  EXPECT_EQ(reduced<int8_t>(fcclInt8, ReduceOp::avg, std::vector<int8_t>(300, 1)), 44 / 300) << "more sources than values";
}

TEST(ReduceKernel, divides_every_integer_of_up_to_32_bits_as_integers_are_divided) {
  for (const int n : {3, 5, 7, 11, 4097, 65535, 65536}) {
    std::vector<uint32_t> sums;
    for (uint32_t quotient : {0u, 1u, 2u, 3u, 255u, 32767u, 65535u, 65536u, 0x7fffffffu / n, 0xffffffffu / n})
      for (uint32_t rest : {0u, 1u, static_cast<uint32_t>(n) - 1}) sums.push_back(quotient * n + rest);
    for (const uint32_t sum : sums) {
      std::vector<uint32_t> values(n);
      values[0] = sum;
      EXPECT_EQ(reduced<uint32_t>(fcclUint32, ReduceOp::avg, values), sum / n) << sum << " / " << n;
      std::vector<int32_t> with_sign(n);
      with_sign[0] = static_cast<int32_t>(sum);
      EXPECT_EQ(reduced<int32_t>(fcclInt32, ReduceOp::avg, with_sign), static_cast<int32_t>(sum) / n) << sum << " / " << n;
      std::vector<int16_t> narrow(n);
      narrow[0] = static_cast<int16_t>(sum);
      EXPECT_EQ(reduced<int16_t>(fcclInt16, ReduceOp::avg, narrow), static_cast<int16_t>(sum) / n) << sum << " / " << n;
    }
  }
}

TEST(ReduceKernel, takes_any_byte_but_zero_for_true) {
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::bor}) {
    EXPECT_EQ(reduced<uint8_t>(fcclBool, op, {0, 0, 0}), 0) << name_of(op);
    EXPECT_EQ(reduced<uint8_t>(fcclBool, op, {0, 128, 2}), 1) << name_of(op);
  }
  for (const ReduceOp op : {ReduceOp::prod, ReduceOp::min, ReduceOp::band}) {
    EXPECT_EQ(reduced<uint8_t>(fcclBool, op, {255, 1, 2}), 1) << name_of(op);
    EXPECT_EQ(reduced<uint8_t>(fcclBool, op, {1, 0, 2}), 0) << name_of(op);
  }
  EXPECT_EQ(reduced<uint8_t>(fcclBool, ReduceOp::bxor, {255, 1, 2}), 1);
  EXPECT_EQ(reduced<uint8_t>(fcclBool, ReduceOp::bxor, {255, 0, 2}), 0);
  EXPECT_EQ(reduced<uint8_t>(fcclBool, ReduceOp::sum, {7}), 1);
}

TEST(ReduceKernel, merges_the_bits_of_integers) {
  EXPECT_EQ(reduced<uint16_t>(fcclUint16, ReduceOp::band, {0xff0f, 0x0fff, 0xf0ff}), 0x000f);
  EXPECT_EQ(reduced<int32_t>(fcclInt32, ReduceOp::bor, {INT32_MIN, 1, 2}), INT32_MIN + 3);
  EXPECT_EQ(reduced<int8_t>(fcclInt8, ReduceOp::bxor, {-1, 3, 3}), -1);
}

TEST(ReduceKernel, overflows_8_bit_floats_as_torch_does) {
  // 448 + 448, and 57344 + 57344.
  EXPECT_EQ(reduced<uint8_t>(fcclFloat8e4m3, ReduceOp::sum, {0x7e, 0x7e}), 0x7e)
      << "the largest number, for want of an infinity";
  EXPECT_EQ(reduced<uint8_t>(fcclFloat8e4m3, ReduceOp::sum, {0xfe, 0xfe}), 0xfe);
  EXPECT_EQ(reduced<uint8_t>(fcclFloat8e4m3, ReduceOp::sum, {0xfe, 0xff}), 0x7f);
  EXPECT_EQ(reduced<uint8_t>(fcclFloat8e4m3, ReduceOp::avg, {0x7e, 0x7e}), 0x7e);
  EXPECT_EQ(reduced<uint8_t>(fcclFloat8e5m2, ReduceOp::sum, {0x7b, 0x7b}), 0x7c);
  EXPECT_EQ(reduced<uint8_t>(fcclFloat8e5m2, ReduceOp::sum, {0xfb, 0xfb}), 0xfc);
}

TEST(ReduceKernel, wraps_integer_sums_and_products) {
  EXPECT_EQ(reduced<int32_t>(fcclInt32, ReduceOp::sum, {INT32_MAX, 1}), INT32_MIN);
  EXPECT_EQ(reduced<int64_t>(fcclInt64, ReduceOp::sum, {INT64_MIN, -1}), INT64_MAX);
  EXPECT_EQ(reduced<int8_t>(fcclInt8, ReduceOp::prod, {-128, -1}), -128);
  EXPECT_EQ(reduced<uint8_t>(fcclUint8, ReduceOp::prod, {16, 17}), 16);
  EXPECT_EQ(reduced<int16_t>(fcclInt16, ReduceOp::prod, {-32768, 3}), -32768);
  EXPECT_EQ(reduced<uint16_t>(fcclUint16, ReduceOp::prod, {65535, 65535}), 1);
  EXPECT_EQ(reduced<int64_t>(fcclInt64, ReduceOp::prod, {INT64_MAX, INT64_MAX}), 1);
  EXPECT_EQ(reduced<int32_t>(fcclInt32, ReduceOp::premul_sum, {INT32_MIN, 3}, {-1, 5}), static_cast<int32_t>(0x8000000fu));
  EXPECT_EQ(reduced<int64_t>(fcclInt64, ReduceOp::premul_sum, {INT64_MAX, 1}, {2, 1}), -1);
}

TEST(ReduceKernel, multiplies_each_source_by_its_own_scalar) {
  EXPECT_EQ(reduced<double>(fcclFloat64, ReduceOp::premul_sum, {1.0, 10.0, 100.0}, {2.0, 3.0, 4.0}), 432.0);
  EXPECT_EQ(reduced<float>(fcclFloat32, ReduceOp::premul_sum, {3.0f}, {0.5f}), 1.5f);
  // 2 * 0.5 + 4 * 2
  EXPECT_EQ(reduced<uint16_t>(fcclFloat16, ReduceOp::premul_sum, {0x4000, 0x4400}, {0x3800, 0x4000}), 0x4880);
  EXPECT_EQ(reduced<uint16_t>(fcclBfloat16, ReduceOp::premul_sum, {0x4000, 0x4080}, {0x3f00, 0x4000}), 0x4110);
}

TEST(ReduceKernel, adds_zeros_as_ieee_754_does) {
  EXPECT_EQ(reduced_bits(ReduceOp::sum, {-0.0f}), 0x80000000u);
  EXPECT_EQ(reduced_bits(ReduceOp::sum, {-0.0f, -0.0f, -0.0f}), 0x80000000u);
  EXPECT_EQ(reduced_bits(ReduceOp::sum, {-0.0f, 0.0f}), 0u);
}

TEST(ReduceKernel, keeps_the_first_of_two_zeros_in_a_minimum_or_maximum) {
  for (ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
    EXPECT_EQ(reduced_bits(op, {-0.0f, 0.0f, 0.0f}), 0x80000000u) << name_of(op);
    EXPECT_EQ(reduced_bits(op, {0.0f, -0.0f, -0.0f}), 0u) << name_of(op);
  }
}

TEST(ReduceKernel, lets_one_nan_through_whatever_nan_came_in) {
  const float negative_with_payload = std::bit_cast<float>(0xffc12345u);
  for (ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min, ReduceOp::avg, ReduceOp::premul_sum}) {
    for (size_t place = 0; place < 3; ++place) {
      std::vector<float> values{1.0f, 2.0f, 3.0f};
      values[place] = negative_with_payload;
      EXPECT_EQ(reduced_bits(op, values), kNanBits) << name_of(op) << ", source " << place;
    }
  }
  EXPECT_EQ(reduced_bits(ReduceOp::sum, {negative_with_payload, kNan}), kNanBits);
  EXPECT_EQ(reduced_bits(ReduceOp::sum, {kInfinity, -kInfinity}), kNanBits);
}

TEST(ReduceKernel, keeps_infinities) {
  EXPECT_EQ(reduced<float>(fcclFloat32, ReduceOp::sum, {kInfinity, 1.0f, -1.0f}), kInfinity);
  EXPECT_EQ(reduced<float>(fcclFloat32, ReduceOp::avg, {-kInfinity, 1.0f}), -kInfinity);
  EXPECT_EQ(reduced<float>(fcclFloat32, ReduceOp::min, {1.0f, -kInfinity}), -kInfinity);
  EXPECT_EQ(reduced<float>(fcclFloat32, ReduceOp::max, {kInfinity, 1.0f}), kInfinity);
}

TEST(ReduceKernelDeathTest, refuses_to_run_without_sources) {
  float out = 0;
  EXPECT_DEATH(reduce_kernel(fcclFloat32, ReduceOp::sum)(&out, nullptr, 0, 1, nullptr), "between 1 and 65536 sources");
}

}  // namespace
}  // namespace fccl::core
