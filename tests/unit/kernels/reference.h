// The correct value of every reduction, computed as plainly as the rule is stated: one element at a time, by recursion.
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

namespace fccl::core::testing {

using Bytes = std::vector<std::byte>;

// A binary floating-point format of 8 or 16 bits. In a format without infinities the only NaN has all bits set, and the largest
// number stands for all larger ones.
struct Format {
  int bits;
  int mantissa_bits;
  int bias;
  bool has_infinity;
  uint16_t quiet_nan;

  int sign() const { return 1 << (bits - 1); }
  int overflow() const { return has_infinity ? (2 * bias + 1) << mantissa_bits : sign() - 2; }
};

inline constexpr Format kFloat16{16, 10, 15, true, 0x7e00};
inline constexpr Format kBfloat16{16, 7, 127, true, 0x7fc0};
inline constexpr Format kFloat8e5m2{8, 2, 15, true, 0x7f};
inline constexpr Format kFloat8e4m3{8, 3, 7, false, 0x7f};

inline double decode(uint16_t bits, Format format) {
  const int magnitude = bits & (format.sign() - 1);
  const double sign = bits & format.sign() ? -1.0 : 1.0;
  if (magnitude > format.overflow()) return std::numeric_limits<double>::quiet_NaN();
  if (magnitude == format.overflow() && format.has_infinity) return sign * std::numeric_limits<double>::infinity();
  const int mantissa = magnitude & ((1 << format.mantissa_bits) - 1);
  const int exponent = magnitude >> format.mantissa_bits;
  const int implicit_one = exponent == 0 ? 0 : 1 << format.mantissa_bits;
  return sign * std::ldexp(mantissa + implicit_one, std::max(exponent, 1) - format.bias - format.mantissa_bits);
}

inline uint16_t encode(double value, Format format) {
  const int sign = std::signbit(value) ? format.sign() : 0;
  if (std::isnan(value)) return format.quiet_nan;
  if (std::isinf(value)) return static_cast<uint16_t>(sign | format.overflow());
  const int exponent = value == 0 ? 1 - format.bias : std::max(std::ilogb(value), 1 - format.bias);
  // Counts units of the last place, rounded to even. A mantissa that rounds up to the next power carries into the exponent
  // field.
  const int mantissa = static_cast<int>(std::nearbyint(std::ldexp(std::fabs(value), format.mantissa_bits - exponent)));
  const int64_t magnitude = (static_cast<int64_t>(exponent + format.bias - 1) << format.mantissa_bits) + mantissa;
  return static_cast<uint16_t>(sign | static_cast<int>(std::min<int64_t>(magnitude, format.overflow())));
}

template <class T>
T reference_product(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

template <class T>
T reference_merge(ReduceOp op, T a, T b) {
  if (op == ReduceOp::min || op == ReduceOp::max) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    }
    return (op == ReduceOp::min ? b < a : b > a) ? b : a;
  }
  if (op == ReduceOp::prod) return reference_product(a, b);
  if constexpr (std::is_integral_v<T>) {
    if (op == ReduceOp::band) return static_cast<T>(a & b);
    if (op == ReduceOp::bor) return static_cast<T>(a | b);
    if (op == ReduceOp::bxor) return static_cast<T>(a ^ b);
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

template <class T>
T reference_quotient(T sum, size_t divisor) {
  // Makes both operands as wide as the result, and wide enough for the number of sources.
  using Divided = std::common_type_t<T, std::conditional_t<sizeof(T) < 4, int, T>>;
  return static_cast<T>(static_cast<Divided>(sum) / static_cast<Divided>(divisor));
}

// Computes one element: multiplies each source by its scalar before the tree, and divides an average after it.
template <class T>
T reference_element(ReduceOp op, std::vector<T> values, const std::vector<T>& scalars) {
  if (op == ReduceOp::premul_sum)
    for (size_t s = 0; s < values.size(); ++s) values[s] = reference_product(values[s], scalars[s]);
  const T result = reference_tree(op, values);
  return op == ReduceOp::avg ? reference_quotient(result, values.size()) : result;
}

// Computes one element of a sum between hosts: a tree over each host's ranks, then a tree over hosts; `travel` rounds each
// partial as the wire does.
template <class T, class Travel>
T reference_element_between_hosts(ReduceOp op, std::vector<T> values, const std::vector<T>& scalars,
                                  const std::vector<int>& ranks_of_hosts, Travel travel) {
  const ReduceOp merged = op == ReduceOp::avg || op == ReduceOp::premul_sum ? ReduceOp::sum : op;
  if (op == ReduceOp::premul_sum)
    for (size_t s = 0; s < values.size(); ++s) values[s] = reference_product(values[s], scalars[s]);
  std::vector<T> partials;
  auto next = values.begin();
  for (const int ranks : ranks_of_hosts) {
    partials.push_back(travel(reference_tree(merged, std::vector<T>(next, next + ranks))));
    next += ranks;
  }
  const T total = reference_tree(merged, partials);
  return op == ReduceOp::avg ? reference_quotient(total, values.size()) : total;
}

// The number of ranks of each host, and the type of partials of narrower elements. Empty `ranks` means a sum of one level.
struct Hosts {
  std::vector<int> ranks;
  bool wire_is_float32 = false;
};

template <class T>
T stored_at(const void* bytes, size_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(bytes) + index * sizeof(T), sizeof(T));
  return value;
}

// `Stored` is an element's type in memory, `T` the type in which elements are added; `widen` and `narrow` convert between them.
template <class Stored, class T, class Widen, class Narrow>
Bytes reference_loop(ReduceOp op, const std::vector<Bytes>& sources, const std::vector<Scalar>& scalars, const Hosts& hosts,
                     Widen widen, Narrow narrow) {
  Bytes out(sources[0].size());
  std::vector<T> factors;
  for (const Scalar& scalar : scalars) factors.push_back(widen(stored_at<Stored>(&scalar.bits, 0)));
  for (size_t i = 0; i < out.size() / sizeof(Stored); ++i) {
    std::vector<T> values;
    for (const Bytes& source : sources) values.push_back(widen(stored_at<Stored>(source.data(), i)));
    const auto travel = [&](T partial) { return hosts.wire_is_float32 ? partial : widen(narrow(partial)); };
    const Stored result =
        narrow(hosts.ranks.empty() ? reference_element(op, values, factors)
                                   : reference_element_between_hosts(op, values, factors, hosts.ranks, travel));
    std::memcpy(out.data() + i * sizeof(Stored), &result, sizeof(Stored));
  }
  return out;
}

// Any byte but zero is true. Sum and max are or; prod and min are and.
inline Bytes reference_of_truths(ReduceOp op, const std::vector<Bytes>& sources, const std::vector<Scalar>& scalars,
                                 const Hosts& hosts) {
  const auto truth = [](uint8_t value) -> uint8_t { return value != 0; };
  const ReduceOp of_truths = op == ReduceOp::sum ? ReduceOp::max : op == ReduceOp::prod ? ReduceOp::min : op;
  return reference_loop<uint8_t, uint8_t>(of_truths, sources, scalars, hosts, truth, truth);
}

// The reduction of sources of equal size. `scalars` holds one per source for premul_sum, and is not read for other operators.
inline Bytes reference_reduce(fcclDataType_t dtype, ReduceOp op, const std::vector<Bytes>& sources,
                              const std::vector<Scalar>& scalars, const Hosts& hosts = {}) {
  const auto plain = [&]<class T>(T) {
    return reference_loop<T, T>(
        op, sources, scalars, hosts, [](T value) { return value; },
        [](T value) {
          if constexpr (std::is_floating_point_v<T>) return std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value;
          return value;
        });
  };
  const auto narrow = [&]<class Stored>(Stored, Format format) {
    return reference_loop<Stored, float>(
        op, sources, scalars, hosts, [=](Stored bits) { return static_cast<float>(decode(bits, format)); },
        [=](float value) { return static_cast<Stored>(encode(value, format)); });
  };
  switch (dtype) {
    case fcclInt8:
      return plain(int8_t{});
    case fcclUint8:
      return plain(uint8_t{});
    case fcclInt16:
      return plain(int16_t{});
    case fcclUint16:
      return plain(uint16_t{});
    case fcclInt32:
      return plain(int32_t{});
    case fcclUint32:
      return plain(uint32_t{});
    case fcclInt64:
      return plain(int64_t{});
    case fcclUint64:
      return plain(uint64_t{});
    case fcclFloat32:
      return plain(float{});
    case fcclFloat64:
      return plain(double{});
    case fcclFloat16:
      return narrow(uint16_t{}, kFloat16);
    case fcclBfloat16:
      return narrow(uint16_t{}, kBfloat16);
    case fcclFloat8e4m3:
      return narrow(uint8_t{}, kFloat8e4m3);
    case fcclFloat8e5m2:
      return narrow(uint8_t{}, kFloat8e5m2);
    case fcclBool:
      return reference_of_truths(op, sources, scalars, hosts);
    default:
      throw std::invalid_argument("there is no reference for this data type");
  }
}

// Converts floats of 8 or 16 bits to float32, which holds them all exactly.
template <class Stored>
Bytes reference_widened(const Bytes& narrow, Format format) {
  Bytes wide(narrow.size() / sizeof(Stored) * sizeof(float));
  for (size_t i = 0; i < narrow.size() / sizeof(Stored); ++i) {
    const auto value = static_cast<float>(decode(stored_at<Stored>(narrow.data(), i), format));
    std::memcpy(wide.data() + i * sizeof value, &value, sizeof value);
  }
  return wide;
}

inline Bytes reference_widened(fcclDataType_t dtype, const Bytes& narrow) {
  if (dtype == fcclFloat16) return reference_widened<uint16_t>(narrow, kFloat16);
  if (dtype == fcclBfloat16) return reference_widened<uint16_t>(narrow, kBfloat16);
  if (dtype == fcclFloat8e4m3) return reference_widened<uint8_t>(narrow, kFloat8e4m3);
  if (dtype == fcclFloat8e5m2) return reference_widened<uint8_t>(narrow, kFloat8e5m2);
  throw std::invalid_argument("only narrow floats are widened");
}

// Reduces narrow floats to float32: the same as reducing their values as float32.
inline Bytes reference_reduce_to_float32(fcclDataType_t dtype, ReduceOp op, std::vector<Bytes> sources,
                                         std::vector<Scalar> scalars, const Hosts& hosts = {}) {
  for (Bytes& source : sources) source = reference_widened(dtype, source);
  for (Scalar& scalar : scalars) {
    Bytes factor(size_of(dtype));
    std::memcpy(factor.data(), &scalar.bits, factor.size());
    factor = reference_widened(dtype, factor);
    std::memcpy(&scalar.bits, factor.data(), factor.size());
  }
  return reference_reduce(fcclFloat32, op, sources, scalars, hosts);
}

}  // namespace fccl::core::testing
