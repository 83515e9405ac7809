// Inputs for the tests of kernels: every type and operator, random elements, and edge values of arithmetic.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>
#include <vector>

#include "operators.h"
#include "unit/kernels/reference.h"

namespace fccl::core::testing {

inline constexpr std::byte kPoison{0xa5};
// Lists every type with every operator that is defined for it.
inline std::vector<std::tuple<fcclDataType_t, ReduceOp>> every_kernel() {
  std::vector<std::tuple<fcclDataType_t, ReduceOp>> all;
  for (int dtype = 0; dtype < fcclNumTypes; ++dtype)
    for (const ReduceOp op : kEveryOperator)
      if (has_meaning(static_cast<fcclDataType_t>(dtype), op)) all.emplace_back(static_cast<fcclDataType_t>(dtype), op);
  return all;
}

inline uint64_t random_bits(uint64_t source, uint64_t index) {
  uint64_t x = source * 0x9e3779b97f4a7c15u + index * 0xbf58476d1ce4e5b9u + 0x94d049bb133111ebu;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

// Random integers, and floats of either sign with exponents so different that the order of additions changes the result.
inline uint64_t random_element(fcclDataType_t dtype, uint64_t source, uint64_t index) {
  const uint64_t bits = random_bits(source, index);
  const double value = std::ldexp(static_cast<double>(static_cast<int64_t>(bits)) * 0x1p-63, static_cast<int>(bits % 9) - 4);
  switch (dtype) {
    case fcclFloat16:
      return encode(value, kFloat16);
    case fcclBfloat16:
      return encode(value, kBfloat16);
    case fcclFloat8e4m3:
      return encode(value, kFloat8e4m3);
    case fcclFloat8e5m2:
      return encode(value, kFloat8e5m2);
    case fcclBool:
      return bits % 2 == 0 ? 0 : bits;
    case fcclFloat32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case fcclFloat64:
      return std::bit_cast<uint64_t>(value);
    default:
      return bits;
  }
}

inline void put_element(Bytes& bytes, fcclDataType_t dtype, size_t index, uint64_t element) {
  std::memcpy(bytes.data() + index * size_of(dtype), &element, size_of(dtype));
}

inline std::vector<Bytes> random_sources(fcclDataType_t dtype, int source_count, size_t count) {
  std::vector<Bytes> sources(source_count, Bytes(count * size_of(dtype)));
  for (int s = 0; s < source_count; ++s) {
    for (size_t i = 0; i < count; ++i) put_element(sources[s], dtype, i, random_element(dtype, s, i));
  }
  return sources;
}

inline std::vector<Scalar> random_scalars(fcclDataType_t dtype, int source_count) {
  std::vector<Scalar> scalars(source_count);
  for (int s = 0; s < source_count; ++s) scalars[s].bits = random_element(dtype, s, 1'000'000);
  return scalars;
}

inline std::vector<const void*> addresses_of(const std::vector<Bytes>& sources) {
  std::vector<const void*> addresses(sources.size());
  std::ranges::transform(sources, addresses.begin(), [](const Bytes& source) { return source.data(); });
  return addresses;
}

// Edge values of every type: zeros, units, extremes, subnormals, infinities, NaN; for a byte, every pattern.
inline std::vector<uint64_t> edges_of(fcclDataType_t dtype) {
  std::vector<uint64_t> edges;
  const int width = static_cast<int>(size_of(dtype)) * 8;
  for (uint64_t pattern = 0; width == 8 && pattern < 256; ++pattern) edges.push_back(pattern);
  if (width == 8) return edges;
  const uint64_t sign = uint64_t{1} << (width - 1);
  const int mantissa_bits = dtype == fcclBfloat16 ? 7 : width == 16 ? 10 : width == 32 ? 23 : 52;
  const uint64_t infinity = (sign - 1) & ~((uint64_t{1} << mantissa_bits) - 1);
  const uint64_t smallest_normal = uint64_t{1} << mantissa_bits;
  const uint64_t quiet = smallest_normal >> 1;
  for (uint64_t magnitude :
       {uint64_t{0}, uint64_t{1}, uint64_t{2}, smallest_normal - 1, smallest_normal, smallest_normal + 1, infinity / 2,
        infinity - 2, infinity - 1, infinity, infinity | 1, infinity | quiet, infinity | quiet | 1, sign - 1}) {
    edges.push_back(magnitude);
    edges.push_back(sign | magnitude);
    edges.push_back((~magnitude + 1) & (sign | (sign - 1)));
  }
  return edges;
}

// Sources whose first two members together contain every pair of edge values.
inline std::vector<Bytes> edge_sources(fcclDataType_t dtype, int n) {
  const auto edges = edges_of(dtype);
  std::vector<Bytes> sources(n, Bytes(edges.size() * edges.size() * size_of(dtype)));
  for (size_t i = 0; i < edges.size() * edges.size(); ++i)
    for (int s = 0; s < n; ++s) {
      const size_t edge = s == 0 ? i / edges.size() : s == 1 ? i % edges.size() : random_bits(s, i) % edges.size();
      put_element(sources[s], dtype, i, edges[edge]);
    }
  return sources;
}

}  // namespace fccl::core::testing
