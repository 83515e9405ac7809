// Tests the conversions of narrow floating-point formats on every instruction set, against the compiler's type and a slow
// reference.
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "unit/kernels/elements_test.cpp"
#include <hwy/foreach_target.h>
// These includes must follow foreach_target.h.
#include <hwy/highway.h>

#include "kernels/elements.h"

HWY_BEFORE_NAMESPACE();
namespace fccl::core::HWY_NAMESPACE {

// Convert `count` elements to float32 and back, in whole chunks; `wide` is in the order of the format's lanes.
template <class Element>
void widen_all(const std::byte* stored, size_t count, float* wide) {
  const Lanes<float> d;
  const size_t lanes = hn::MaxLanes(d);
  for (size_t i = 0; i < count; i += 2 * lanes) {
    const auto pair = Element::load(stored + i * sizeof(typename Element::Stored));
    hn::StoreU(pair.first, d, wide + i);
    hn::StoreU(pair.second, d, wide + i + lanes);
  }
}

template <class Element>
void narrow_all(const float* wide, size_t count, std::byte* stored) {
  const Lanes<float> d;
  const size_t lanes = hn::MaxLanes(d);
  for (size_t i = 0; i < count; i += 2 * lanes)
    Element::store({hn::LoadU(d, wide + i), hn::LoadU(d, wide + i + lanes)}, stored + i * sizeof(typename Element::Stored));
}

void widen_float16(const std::byte* stored, size_t count, float* wide) { widen_all<Float16>(stored, count, wide); }
void widen_float8e4m3(const std::byte* stored, size_t count, float* wide) { widen_all<Narrow<E4m3>>(stored, count, wide); }
void widen_float8e5m2(const std::byte* stored, size_t count, float* wide) { widen_all<Narrow<E5m2>>(stored, count, wide); }
void widen_bfloat16(const std::byte* stored, size_t count, float* wide) { widen_all<Bfloat16>(stored, count, wide); }
void narrow_float16(const float* wide, size_t count, std::byte* stored) { narrow_all<Float16>(wide, count, stored); }
void narrow_float8e4m3(const float* wide, size_t count, std::byte* stored) { narrow_all<Narrow<E4m3>>(wide, count, stored); }
void narrow_float8e5m2(const float* wide, size_t count, std::byte* stored) { narrow_all<Narrow<E5m2>>(wide, count, stored); }
void narrow_bfloat16(const float* wide, size_t count, std::byte* stored) { narrow_all<Bfloat16>(wide, count, stored); }
void widen_ordered_bfloat16(const std::byte* stored, size_t count, float* wide) {
  widen_all<OrderedBfloat16>(stored, count, wide);
}
void narrow_ordered_bfloat16(const float* wide, size_t count, std::byte* stored) {
  narrow_all<OrderedBfloat16>(wide, count, stored);
}
size_t float_lanes() { return hn::MaxLanes(Lanes<float>()); }

}  // namespace fccl::core::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "unit/kernels/instruction_sets.h"
#include "unit/kernels/reference.h"

namespace fccl::core {

HWY_EXPORT(widen_float16);
HWY_EXPORT(widen_bfloat16);
HWY_EXPORT(widen_float8e4m3);
HWY_EXPORT(widen_float8e5m2);
HWY_EXPORT(narrow_float16);
HWY_EXPORT(narrow_bfloat16);
HWY_EXPORT(narrow_float8e4m3);
HWY_EXPORT(narrow_float8e5m2);
HWY_EXPORT(widen_ordered_bfloat16);
HWY_EXPORT(narrow_ordered_bfloat16);
HWY_EXPORT(float_lanes);

namespace {

using testing::decode;
using testing::encode;
using testing::Format;

struct NarrowFormat {
  const char* name;
  Format format;
  std::function<void(const std::byte*, size_t, float*)> widen;
  std::function<void(const float*, size_t, std::byte*)> narrow;
};

#define FCCL_NARROW_FORMAT(name, format)                                           \
  {#name, format, [](auto... all) { HWY_DYNAMIC_DISPATCH(widen_##name)(all...); }, \
   [](auto... all) { HWY_DYNAMIC_DISPATCH(narrow_##name)(all...); }}

const NarrowFormat kFormats[] = {
    FCCL_NARROW_FORMAT(float16, testing::kFloat16), FCCL_NARROW_FORMAT(bfloat16, testing::kBfloat16),
    FCCL_NARROW_FORMAT(ordered_bfloat16, testing::kBfloat16), FCCL_NARROW_FORMAT(float8e4m3, testing::kFloat8e4m3),
    FCCL_NARROW_FORMAT(float8e5m2, testing::kFloat8e5m2)};

uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }

// Floats that cover every sign and exponent and, in each, the mantissas around every tie of any format.
const std::vector<float>& interesting_floats() {
  static const std::vector<float> floats = [] {
    std::vector<float> all;
    for (uint32_t upper = 0; upper < 0x10000; ++upper)
      for (uint32_t lower : {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x2fffu, 0x3000u, 0x3001u, 0x4000u, 0x7fffu, 0x8000u,
                             0x8001u, 0xefffu, 0xf000u, 0xf001u, 0xffffu})
        all.push_back(std::bit_cast<float>(upper << 16 | lower));
    return all;
  }();
  return floats;
}

uint16_t stored_at(const std::vector<std::byte>& stored, const Format& format, size_t index) {
  uint16_t value = 0;
  std::memcpy(&value, stored.data() + index * (format.bits / 8), format.bits / 8);
  return value;
}

// bfloat16 widens the even elements of a chunk first, then the odd ones; every other format goes in order.
size_t place_of(const NarrowFormat& format, size_t index) {
  if (std::string(format.name) != "bfloat16") return index;
  const size_t lanes = HWY_DYNAMIC_DISPATCH(float_lanes)();
  const size_t inside = index % (2 * lanes);
  return index - inside + inside / 2 + inside % 2 * lanes;
}

class EveryFormat : public ::testing::TestWithParam<NarrowFormat> {
 protected:
  const NarrowFormat& tested = GetParam();
};

TEST_P(EveryFormat, widens_every_value_exactly) {
  const size_t count = std::max<size_t>(size_t{1} << tested.format.bits, 256);
  std::vector<std::byte> stored(count * 2);
  for (size_t i = 0; i < count; ++i) std::memcpy(stored.data() + i * (tested.format.bits / 8), &i, tested.format.bits / 8);
  for (const int64_t set : testing::instruction_sets()) {
    const testing::InstructionSet chosen(set);
    std::vector<float> wide(count);
    tested.widen(stored.data(), count, wide.data());
    for (size_t i = 0; i < count; ++i) {
      const float widened = wide[place_of(tested, i)];
      const float expected = static_cast<float>(decode(static_cast<uint16_t>(i), tested.format));
      ASSERT_TRUE(std::isnan(expected) ? std::isnan(widened) : bits_of(widened) == bits_of(expected))
          << std::hex << i << " is " << widened << ", not " << expected << " with " << hwy::TargetName(set);
    }
  }
}

TEST_P(EveryFormat, narrows_every_float_to_the_nearest_with_ties_to_even) {
  const std::vector<float>& floats = interesting_floats();
  std::vector<uint16_t> expected;
  for (const float value : floats) expected.push_back(encode(value, tested.format));
  for (const int64_t set : testing::instruction_sets()) {
    const testing::InstructionSet chosen(set);
    std::vector<float> wide(floats.size());
    for (size_t i = 0; i < floats.size(); ++i) wide[place_of(tested, i)] = floats[i];
    std::vector<std::byte> stored(floats.size() * 2);
    tested.narrow(wide.data(), floats.size(), stored.data());
    for (size_t i = 0; i < floats.size(); ++i)
      ASSERT_EQ(stored_at(stored, tested.format, i), expected[i])
          << std::hexfloat << floats[i] << " with " << hwy::TargetName(set);
  }
}

INSTANTIATE_TEST_SUITE_P(Elements, EveryFormat, ::testing::ValuesIn(kFormats),
                         [](const auto& tested) { return std::string(tested.param.name); });

#if defined(__SSE2__)
TEST(Reference, of_float16_agrees_with_the_compilers_type) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto compiled = static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits)));
    const auto decoded = static_cast<float>(decode(static_cast<uint16_t>(bits), testing::kFloat16));
    ASSERT_TRUE(std::isnan(compiled) ? std::isnan(decoded) : bits_of(compiled) == bits_of(decoded)) << std::hex << bits;
  }
  for (const float value : interesting_floats()) {
    const auto compiled = std::bit_cast<uint16_t>(static_cast<_Float16>(value));
    ASSERT_EQ(encode(value, testing::kFloat16), std::isnan(value) ? 0x7e00 : compiled) << std::hexfloat << value;
  }
}
#endif

TEST(Reference, has_the_known_values_at_the_edges_of_its_formats) {
  EXPECT_EQ(encode(65504, testing::kFloat16), 0x7bff);
  EXPECT_EQ(encode(65519.996, testing::kFloat16), 0x7bff) << "the last float below the tie between 65504 and infinity";
  EXPECT_EQ(encode(65520, testing::kFloat16), 0x7c00);
  EXPECT_EQ(encode(0x1p-25, testing::kFloat16), 0x0000) << "a tie, to even";
  EXPECT_EQ(encode(0x1.000002p-25, testing::kFloat16), 0x0001);
  EXPECT_EQ(encode(-0.0, testing::kFloat16), 0x8000);
  EXPECT_EQ(encode(0x1p-133, testing::kBfloat16), 0x0001);
  EXPECT_EQ(encode(448, testing::kFloat8e4m3), 0x7e);
  EXPECT_EQ(encode(480, testing::kFloat8e4m3), 0x7e) << "too large: the largest number";
  EXPECT_EQ(encode(-std::numeric_limits<double>::infinity(), testing::kFloat8e4m3), 0xfe);
  EXPECT_EQ(encode(-std::numeric_limits<double>::quiet_NaN(), testing::kFloat8e4m3), 0x7f) << "NaN has no sign";
  EXPECT_EQ(encode(0x1p-9, testing::kFloat8e4m3), 0x01);
  EXPECT_EQ(encode(57344, testing::kFloat8e5m2), 0x7b);
  EXPECT_EQ(encode(61440, testing::kFloat8e5m2), 0x7c) << "a tie, to even, which is infinity";
  EXPECT_EQ(encode(0x1p-16, testing::kFloat8e5m2), 0x01);
}

}  // namespace
}  // namespace fccl::core
#endif
