// The two families of kernels, each found for the instruction set of this processor.
#pragma once

#include "kernels/reduce.h"

namespace fccl {

ReduceKernel float_kernel(fcclDataType_t dtype, ReduceOp op);
ReduceKernel integer_kernel(fcclDataType_t dtype, ReduceOp op);

}  // namespace fccl
