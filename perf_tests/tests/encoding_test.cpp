// Tests the small floats by numbers that are known from their definitions.
#include "encoding.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fccl::perf {
namespace {

TEST(Encoding, KnownNumbersHaveTheirBits) {
  EXPECT_EQ(encode(1, fcclFloat16), 0x3c00u);
  EXPECT_EQ(encode(-65504, fcclFloat16), 0xfbffu);
  EXPECT_EQ(encode(0x1p-24, fcclFloat16), 0x0001u);
  EXPECT_EQ(encode(1, fcclBfloat16), 0x3f80u);
  EXPECT_EQ(encode(448, fcclFloat8e4m3), 0x7eu);
  EXPECT_EQ(encode(0x1p-9, fcclFloat8e4m3), 0x01u);
  EXPECT_EQ(encode(-57344, fcclFloat8e5m2), 0xfbu);
  EXPECT_EQ(encode(0.5, fcclFloat32), 0x3f000000u);
  EXPECT_EQ(encode(-0.0, fcclFloat8e5m2), 0x80u);
}

TEST(Encoding, TiesGoToEven) {
  EXPECT_EQ(encode(1 + 0x1p-11, fcclFloat16), 0x3c00u);
  EXPECT_EQ(encode(1 + 3 * 0x1p-11, fcclFloat16), 0x3c02u);
  EXPECT_EQ(encode(1 + 0x1p-11 + 0x1p-30, fcclFloat16), 0x3c01u);
  EXPECT_EQ(encode(2 - 0x1p-12, fcclFloat16), 0x4000u) << "the carry goes into the exponent";
}

TEST(Encoding, EveryPatternOfASmallFloatComesBack) {
  for (const auto& [datatype, patterns] : {std::pair(fcclFloat16, 1u << 16), std::pair(fcclBfloat16, 1u << 16),
                                           std::pair(fcclFloat8e4m3, 1u << 8), std::pair(fcclFloat8e5m2, 1u << 8)}) {
    unsigned finite = 0;
    for (Bits bits = 0; bits < patterns; ++bits) {
      const double value = decode(bits, datatype);
      if (!std::isfinite(value)) continue;
      ++finite;
      ASSERT_EQ(encode(value, datatype), bits) << datatype;
    }
    const unsigned no_numbers = datatype == fcclFloat16      ? 1u << 11
                                : datatype == fcclBfloat16   ? 1u << 8
                                : datatype == fcclFloat8e5m2 ? 1u << 3
                                                             : 2u;
    EXPECT_EQ(finite, patterns - no_numbers) << datatype;
  }
}

}  // namespace
}  // namespace fccl::perf
