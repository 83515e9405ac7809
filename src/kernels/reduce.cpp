// Finds the kernel for an operator on a data type.
#include "kernels/reduce.h"

#include "kernels/families.h"

namespace fccl {

ReduceKernel reduce_kernel(fcclDataType_t dtype, ReduceOp op) {
  const ReduceKernel found = float_kernel(dtype, op);
  return found != nullptr ? found : integer_kernel(dtype, op);
}

}  // namespace fccl
