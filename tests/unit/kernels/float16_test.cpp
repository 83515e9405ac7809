// The 16-bit conversions against the compiler's own type and against a slow reference.
#include "kernels/float16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "unit/kernels/reference.h"

namespace fccl {
namespace {

uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }

// Calls `visit` with floats that cover every sign and exponent, and in each the mantissas around every tie of either format.
template <class Visit>
void for_each_interesting_float(Visit visit) {
  for (uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (uint32_t lower : {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x2fffu, 0x3000u, 0x3001u, 0x7fffu, 0x8000u, 0x8001u,
                           0xefffu, 0xf000u, 0xf001u, 0xffffu}) {
      visit(std::bit_cast<float>(upper << 16 | lower));
    }
  }
}

TEST(Float16, widens_every_value_exactly) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float widened = float_from_float16(static_cast<uint16_t>(bits));
    const float expected = static_cast<float>(testing::decode(static_cast<uint16_t>(bits), testing::kFloat16));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(widened)) << std::hex << bits;
    } else {
      ASSERT_EQ(bits_of(widened), bits_of(expected)) << std::hex << bits;
    }
  }
}

TEST(Float16, narrows_every_float_to_the_nearest_with_ties_to_even) {
  for_each_interesting_float([](float value) {
    ASSERT_EQ(float16_from_float(value), testing::encode(value, testing::kFloat16)) << std::hexfloat << value;
  });
}

TEST(Float16, comes_back_from_float32_unchanged) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const uint32_t expected = (bits & 0x7fff) > 0x7c00 ? 0x7e00 : bits;
    ASSERT_EQ(float16_from_float(float_from_float16(static_cast<uint16_t>(bits))), expected) << std::hex << bits;
  }
}

#if defined(__SSE2__)
TEST(Float16, agrees_with_the_compilers_type) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float expected = static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits)));
    ASSERT_EQ(bits_of(float_from_float16(static_cast<uint16_t>(bits))), bits_of(expected)) << std::hex << bits;
  }
  for_each_interesting_float([](float value) {
    const uint16_t expected = std::bit_cast<uint16_t>(static_cast<_Float16>(value));
    ASSERT_EQ(float16_from_float(value), std::isnan(value) ? 0x7e00 : expected) << std::hexfloat << value;
  });
}
#endif

TEST(Float16, has_the_known_values_at_its_edges) {
  EXPECT_EQ(float16_from_float(65504.0f), 0x7bff);
  EXPECT_EQ(float16_from_float(65519.996f), 0x7bff) << "the last float below the tie between 65504 and infinity";
  EXPECT_EQ(float16_from_float(65520.0f), 0x7c00);
  EXPECT_EQ(float16_from_float(-std::numeric_limits<float>::infinity()), 0xfc00);
  EXPECT_EQ(float16_from_float(0x1p-14f), 0x0400);
  EXPECT_EQ(float16_from_float(0x1p-24f), 0x0001);
  EXPECT_EQ(float16_from_float(0x1p-25f), 0x0000) << "a tie, to even";
  EXPECT_EQ(float16_from_float(0x1.000002p-25f), 0x0001);
  EXPECT_EQ(float16_from_float(-0.0f), 0x8000);
  EXPECT_EQ(float16_from_float(-std::numeric_limits<float>::quiet_NaN()), 0x7e00);
}

TEST(Bfloat16, widens_every_value_exactly) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float widened = float_from_bfloat16(static_cast<uint16_t>(bits));
    const float expected = static_cast<float>(testing::decode(static_cast<uint16_t>(bits), testing::kBfloat16));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(widened)) << std::hex << bits;
    } else {
      ASSERT_EQ(bits_of(widened), bits_of(expected)) << std::hex << bits;
    }
  }
}

TEST(Bfloat16, narrows_every_float_to_the_nearest_with_ties_to_even) {
  for_each_interesting_float([](float value) {
    ASSERT_EQ(bfloat16_from_float(value), testing::encode(value, testing::kBfloat16)) << std::hexfloat << value;
  });
}

TEST(Bfloat16, has_the_known_values_at_its_edges) {
  EXPECT_EQ(bfloat16_from_float(1.0f), 0x3f80);
  EXPECT_EQ(bfloat16_from_float(0x1.01p0f), 0x3f80) << "a tie, to even";
  EXPECT_EQ(bfloat16_from_float(0x1.03p0f), 0x3f82) << "a tie, to even";
  EXPECT_EQ(bfloat16_from_float(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(bfloat16_from_float(std::bit_cast<float>(0x7f800001u)), 0x7fc0) << "a NaN whose upper half alone is infinity";
  EXPECT_EQ(bfloat16_from_float(-std::numeric_limits<float>::quiet_NaN()), 0x7fc0);
}

}  // namespace
}  // namespace fccl
