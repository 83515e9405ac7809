// Finds the kernel for an operator on a data type.
#include "kernels/reduce.h"

#include "kernels/families.h"

namespace fccl {

ReduceKernel reduce_kernel(fcclDataType_t dtype, ReduceOp op) {
  const ReduceKernel found = float_kernel(dtype, op);
  return found != nullptr ? found : integer_kernel(dtype, op);
}

fcclDataType_t partial_type(fcclDataType_t dtype, WireType) { return dtype; }
ReduceKernel partial_kernel(fcclDataType_t dtype, ReduceOp op, WireType) { return reduce_kernel(dtype, op == ReduceOp::avg ? ReduceOp::sum : op); }
ReduceKernel total_kernel(fcclDataType_t dtype, ReduceOp op, WireType) { return reduce_kernel(dtype, op == ReduceOp::premul_sum ? ReduceOp::sum : op); }

}  // namespace fccl
