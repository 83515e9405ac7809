// Rounds to and reads from the small floats with the same few lines for all of them.
#include "encoding.h"

#include <bit>
#include <cmath>
#include <limits>

namespace fccl::perf {
namespace {

// A float of 16 or 8 bits: sign, exponent, stored bits of the significand.
struct SmallFloat {
  int exponent_bits;
  int stored_bits;
  bool has_infinity;  // without one, only the highest pattern is not a number

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  Bits sign() const { return Bits{1} << (exponent_bits + stored_bits); }
};

SmallFloat small_float(fcclDataType_t datatype) {
  switch (datatype) {
    case fcclFloat16:
      return {5, 10, true};
    case fcclBfloat16:
      return {8, 7, true};
    case fcclFloat8e5m2:
      return {5, 2, true};
    default:
      return {4, 3, false};
  }
}

Bits encode_small(double value, const SmallFloat& format) {
  const Bits sign = std::signbit(value) ? format.sign() : 0;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  const int least = 1 - format.bias();
  const int exponent = std::max(std::ilogb(magnitude), least);
  // Rounding up to the next power of two carries into the exponent's bits, as it should.
  const auto significand = static_cast<Bits>(std::nearbyint(std::ldexp(magnitude, format.stored_bits - exponent)));
  return sign | ((static_cast<Bits>(exponent - least) << format.stored_bits) + significand);
}

double decode_small(Bits bits, const SmallFloat& format) {
  const Bits magnitude = bits & (format.sign() - 1);
  const int exponent = static_cast<int>(magnitude >> format.stored_bits);
  const Bits stored = magnitude & ((Bits{1} << format.stored_bits) - 1);
  const Bits highest = format.sign() - 1;
  const int top = (1 << format.exponent_bits) - 1;
  if (format.has_infinity ? exponent == top : magnitude == highest)
    return format.has_infinity && stored == 0 ? (bits & format.sign() ? -INFINITY : INFINITY)
                                              : std::numeric_limits<double>::quiet_NaN();
  const Bits hidden = exponent > 0 ? Bits{1} << format.stored_bits : 0;
  const double value =
      std::ldexp(static_cast<double>(hidden + stored), std::max(exponent, 1) - format.bias() - format.stored_bits);
  return bits & format.sign() ? -value : value;
}

}  // namespace

FloatRange range_of(fcclDataType_t datatype) {
  if (datatype == fcclFloat64) return {53, -1022, 1023};
  if (datatype == fcclFloat32) return {24, -126, 127};
  const SmallFloat format = small_float(datatype);
  return {format.stored_bits + 1, 1 - format.bias(), format.has_infinity ? format.bias() : format.bias() + 1};
}

Bits encode(double value, fcclDataType_t datatype) {
  if (datatype == fcclFloat64) return std::bit_cast<std::uint64_t>(value);
  if (datatype == fcclFloat32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return encode_small(value, small_float(datatype));
}

double decode(Bits bits, fcclDataType_t datatype) {
  if (datatype == fcclFloat64) return std::bit_cast<double>(bits);
  if (datatype == fcclFloat32) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  return decode_small(bits, small_float(datatype));
}

}  // namespace fccl::perf
