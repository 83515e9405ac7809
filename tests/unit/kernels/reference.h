// The value that every reduction must have, written as plainly as the rule itself: one element at a time, by recursion.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "base/dtype.h"

namespace fccl::testing {

using Bytes = std::vector<std::byte>;

// A binary floating-point format of 16 bits.
struct Format16 {
  int mantissa_bits;
  int bias;
  uint16_t quiet_nan;
};

inline constexpr Format16 kFloat16{10, 15, 0x7e00};
inline constexpr Format16 kBfloat16{7, 127, 0x7fc0};

inline double decode(uint16_t bits, Format16 format) {
  const int mantissa = bits & ((1 << format.mantissa_bits) - 1);
  const int exponent = (bits & 0x7fff) >> format.mantissa_bits;
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == 2 * format.bias + 1) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  }
  const int implicit_one = exponent == 0 ? 0 : 1 << format.mantissa_bits;
  return sign * std::ldexp(mantissa + implicit_one, std::max(exponent, 1) - format.bias - format.mantissa_bits);
}

inline uint16_t encode(double value, Format16 format) {
  const int infinity = (2 * format.bias + 1) << format.mantissa_bits;
  const int sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return format.quiet_nan;
  if (std::isinf(value)) return static_cast<uint16_t>(sign | infinity);
  const int exponent = value == 0 ? 1 - format.bias : std::max(std::ilogb(value), 1 - format.bias);
  // In units of the last place, rounded to even; a mantissa that rounds up to the next power carries into the exponent field.
  const int mantissa = static_cast<int>(std::nearbyint(std::ldexp(std::fabs(value), format.mantissa_bits - exponent)));
  const int64_t magnitude = (static_cast<int64_t>(exponent + format.bias - 1) << format.mantissa_bits) + mantissa;
  return static_cast<uint16_t>(sign | static_cast<int>(std::min<int64_t>(magnitude, infinity)));
}

template <class T>
T reference_merge(ReduceOp op, T a, T b) {
  if (op == ReduceOp::min || op == ReduceOp::max) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    }
    return (op == ReduceOp::min ? b < a : b > a) ? b : a;
  }
  if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  return a + b;
}

// The rule: a binary tree over the values, split at the largest power of two below their number.
template <class T>
T reference_tree(ReduceOp op, const std::vector<T>& values) {
  if (values.size() == 1) return values[0];
  size_t split = 1;
  while (split * 2 < values.size()) split *= 2;
  const std::vector<T> left(values.begin(), values.begin() + split), right(values.begin() + split, values.end());
  return reference_merge(op, reference_tree(op, left), reference_tree(op, right));
}

// One element: every source times its scalar before the tree, the average divided behind it.
template <class T>
T reference_element(ReduceOp op, std::vector<T> values, const std::vector<T>& scalars) {
  for (size_t s = 0; op == ReduceOp::premul_sum && s < values.size(); ++s) {
    if constexpr (std::is_integral_v<T>) {
      values[s] = static_cast<T>(static_cast<uint64_t>(values[s]) * static_cast<uint64_t>(scalars[s]));
    } else {
      values[s] *= scalars[s];
    }
  }
  const T result = reference_tree(op, values);
  return op == ReduceOp::avg ? static_cast<T>(result / static_cast<T>(values.size())) : result;
}

template <class T>
T stored_at(const void* bytes, size_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(bytes) + index * sizeof(T), sizeof(T));
  return value;
}

// Stored: how an element lies in memory. T: the type that elements are added in. widen and narrow lead from one to the other.
template <class Stored, class T, class Widen, class Narrow>
Bytes reference_loop(ReduceOp op, const std::vector<Bytes>& sources, const std::vector<Scalar>& scalars, Widen widen,
                     Narrow narrow) {
  Bytes out(sources[0].size());
  std::vector<T> factors;
  for (const Scalar& scalar : scalars) factors.push_back(widen(stored_at<Stored>(&scalar.bits, 0)));
  for (size_t i = 0; i < out.size() / sizeof(Stored); ++i) {
    std::vector<T> values;
    for (const Bytes& source : sources) values.push_back(widen(stored_at<Stored>(source.data(), i)));
    const Stored result = narrow(reference_element(op, values, factors));
    std::memcpy(out.data() + i * sizeof(Stored), &result, sizeof(Stored));
  }
  return out;
}

// The reduction of sources of equal size. `scalars` holds one per source for premul_sum, and is not read for other operators.
inline Bytes reference_reduce(fcclDataType_t dtype, ReduceOp op, const std::vector<Bytes>& sources,
                              const std::vector<Scalar>& scalars) {
  const auto same = [](auto value) { return value; };
  const auto with_one_nan = [](auto value) {
    return std::isnan(value) ? std::numeric_limits<decltype(value)>::quiet_NaN() : value;
  };
  const auto loop16 = [&](Format16 format) {
    return reference_loop<uint16_t, float>(
        op, sources, scalars, [=](uint16_t bits) { return static_cast<float>(decode(bits, format)); },
        [=](float value) { return encode(value, format); });
  };
  switch (dtype) {
    case fcclInt32:
      return reference_loop<int32_t, int32_t>(op, sources, scalars, same, same);
    case fcclInt64:
      return reference_loop<int64_t, int64_t>(op, sources, scalars, same, same);
    case fcclFloat32:
      return reference_loop<float, float>(op, sources, scalars, same, with_one_nan);
    case fcclFloat64:
      return reference_loop<double, double>(op, sources, scalars, same, with_one_nan);
    case fcclFloat16:
      return loop16(kFloat16);
    case fcclBfloat16:
      return loop16(kBfloat16);
    default:
      throw std::invalid_argument("there is no reference for this data type");
  }
}

}  // namespace fccl::testing
