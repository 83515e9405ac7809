// Data types and reduction operators: their sizes and names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "fccl/fccl.h"

namespace fccl {

// The operators that a kernel may be asked for. An operator handle of the C interface names one of the first five or, with a
// scalar, the last.
enum class ReduceOp : uint8_t { sum, prod, max, min, avg, premul_sum };

// The bits of one element of up to eight bytes: the factor of a pre-multiplied sum, stored in the operation's own type.
struct Scalar {
  uint64_t bits = 0;
};

// Bytes of one element, by data type.
inline constexpr std::array<uint8_t, fcclNumTypes> kDataTypeSizes{1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1, 2, 2, 1};

inline bool is_valid(fcclDataType_t dtype) { return static_cast<unsigned>(dtype) < kDataTypeSizes.size(); }
// 0 for a value that is no data type.
inline size_t size_of(fcclDataType_t dtype) { return is_valid(dtype) ? kDataTypeSizes[dtype] : 0; }
// "float32", "bfloat16", ...; "?" for a value that is no data type.
const char* name_of(fcclDataType_t dtype);
// "sum", "avg", ...; "?" for a value that is no operator.
const char* name_of(ReduceOp op);

}  // namespace fccl
