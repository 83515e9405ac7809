// Converts floating types between numbers and bits, by arithmetic that shares nothing with the library.
#pragma once

#include <cstdint>

#include "fccl/fccl.h"

namespace fccl::perf {

// An element in its own encoding, in the low bytes.
using Bits = std::uint64_t;

// The range of a floating type: significands of `precision` bits (the hidden one counted) times powers of two.
struct FloatRange {
  int precision;
  int min_exponent;  // exponent of the least normal number
  int max_exponent;  // exponent of the greatest number with a significand of 1
};

FloatRange range_of(fcclDataType_t datatype);
// Returns the element nearest to `value`, ties to even. The value must be in range: at most the largest number of the type.
Bits encode(double value, fcclDataType_t datatype);
double decode(Bits bits, fcclDataType_t datatype);

}  // namespace fccl::perf
