// The two 16-bit floating-point formats, converted to and from float32 without branches so that loops over them vectorize.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace fccl {

// Narrowing rounds to nearest, ties to even, keeps subnormals, overflows to infinity, and turns every NaN into one: positive,
// quiet, without payload. Widening is exact.

// The conversions compute in int32_t, because SSE2 compares no unsigned integers, and select by masks, because a conditional
// expression would let the compiler move floating-point operations into a branch, and such a loop does not vectorize.
inline int32_t select(bool condition, int32_t chosen, int32_t otherwise) {
  const int32_t mask = -static_cast<int32_t>(condition);
  return (chosen & mask) | (otherwise & ~mask);
}

inline float float_from_bfloat16(uint16_t value) { return std::bit_cast<float>(uint32_t{value} << 16); }

inline uint16_t bfloat16_from_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return static_cast<uint16_t>(select(std::isnan(value), 0x7fc0, static_cast<int32_t>(rounded)));
}

inline float float_from_float16(uint16_t value) {
  const int32_t magnitude = value & 0x7fff;
  // The exponent is moved up by 224 and brought back by the multiplication, so that infinities and NaN get float32's exponent.
  const float normal = std::bit_cast<float>((magnitude << 13) + (224 << 23)) * 0x1p-112f;
  const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
  const int32_t bits = select(magnitude < 0x400, std::bit_cast<int32_t>(subnormal), std::bit_cast<int32_t>(normal));
  return std::bit_cast<float>(bits | (value & 0x8000) << 16);
}

inline uint16_t float16_from_float(float value) {
  constexpr int32_t kSmallestNormal = 113 << 23;  // 2^-14
  constexpr int32_t kOverflow = 143 << 23;        // 2^16
  const int32_t bits = std::bit_cast<int32_t>(value);
  const int32_t magnitude = bits & 0x7fffffff;
  const int32_t limited = select(magnitude < kOverflow, magnitude, kOverflow);
  const int32_t normal = (limited + 0xfff + ((limited >> 13) & 1) - (112 << 23)) >> 13;
  // One unit in the last place of 0.5 is float16's smallest subnormal, so this addition rounds as float16 does.
  const int32_t subnormal = std::bit_cast<int32_t>(std::bit_cast<float>(limited) + 0.5f) - std::bit_cast<int32_t>(0.5f);
  const int32_t finite = select(magnitude < kSmallestNormal, subnormal, normal) | (bits >> 16 & 0x8000);
  return static_cast<uint16_t>(select(std::isnan(value), 0x7e00, finite));
}

}  // namespace fccl
