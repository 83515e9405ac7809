// The families of kernels, each found for the instruction set of this processor.
#pragma once

#include "kernels/reduce.h"

namespace fccl {

// What an average is divided by.
enum class Divisor : uint8_t { source_count, first_scalar };

// Kernels whose elements come out as they go in; nullptr for types of another family.
ReduceKernel float_kernel(fcclDataType_t dtype, ReduceOp op, Divisor divisor);
ReduceKernel integer_kernel(fcclDataType_t dtype, ReduceOp op, Divisor divisor);

// Kernels of float8, float16 and bfloat16 whose results are float32, and the other way around, all but the pre-multiplied sum.
// The latter divide an average by the first scalar, the former by the number of sources.
ReduceKernel widening_kernel(fcclDataType_t dtype, ReduceOp op);
ReduceKernel narrowing_kernel(fcclDataType_t dtype, ReduceOp op);

}  // namespace fccl
