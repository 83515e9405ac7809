// Data types and reduction operators: their sizes and names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "fccl/fccl.h"

namespace fccl::core {

// The operators that kernels implement. An operator handle of the C interface stands for one of the first eight or, if it
// carries a scalar, for premul_sum.
enum class ReduceOp : uint8_t { sum, prod, max, min, avg, band, bor, bxor, premul_sum };

// The bits of one element of up to eight bytes: the factor of a pre-multiplied sum, stored in the operation's own type.
struct Scalar {
  uint64_t bits = 0;
};

struct DataType {
  const char* name;
  uint8_t bytes;  // size of one element
};

// Indexed by fcclDataType_t.
inline constexpr std::array<DataType, fcclNumTypes> kDataTypes{{
    {"int8", 1},
    {"uint8", 1},
    {"int32", 4},
    {"uint32", 4},
    {"int64", 8},
    {"uint64", 8},
    {"float16", 2},
    {"float32", 4},
    {"float64", 8},
    {"bfloat16", 2},
    {"float8e4m3", 1},
    {"float8e5m2", 1},
    {"int16", 2},
    {"uint16", 2},
    {"bool", 1},
}};

inline bool is_valid(fcclDataType_t dtype) { return static_cast<unsigned>(dtype) < kDataTypes.size(); }
// Returns 0 for an unknown value.
inline size_t size_of(fcclDataType_t dtype) { return is_valid(dtype) ? kDataTypes[dtype].bytes : 0; }
// Returns "float32", "bfloat16", ...; "?" for an unknown value.
const char* name_of(fcclDataType_t dtype);
// Returns "sum", "avg", ...; "?" for an unknown value.
const char* name_of(ReduceOp op);

}  // namespace fccl::core
