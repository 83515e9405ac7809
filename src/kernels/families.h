// The families of kernels. Each function picks the kernel for this processor's instruction set.
#pragma once

#include "kernels/reduce.h"

namespace fccl::core {

// The divisor of an average.
enum class Divisor : uint8_t { source_count, first_scalar };

// Kernels whose results have the type of their sources; nullptr for types of another family.
ReduceKernel float_kernel(fcclDataType_t dtype, ReduceOp op, Divisor divisor);
ReduceKernel integer_kernel(fcclDataType_t dtype, ReduceOp op, Divisor divisor);

// Kernels from float8, float16 and bfloat16 to float32, and back; a narrowing kernel has no pre-multiplied sum. It
// divides an average by the first scalar, a widening kernel by the number of sources.
ReduceKernel widening_kernel(fcclDataType_t dtype, ReduceOp op);
ReduceKernel narrowing_kernel(fcclDataType_t dtype, ReduceOp op);

}  // namespace fccl::core
