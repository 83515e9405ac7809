// The kernels of integers and of truth values, compiled once per instruction set.
#include "kernels/families.h"
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/integer_kernels.cpp"
#include <hwy/foreach_target.h>
// Behind it.
#include <hwy/highway.h>

#include "kernels/tree.h"

HWY_BEFORE_NAMESPACE();
namespace fccl::HWY_NAMESPACE {

// Sums and products have the same bits with and without a sign.
template <class T>
ReduceKernel kernel_of(ReduceOp op) {
  using Bits = Plain<std::make_unsigned_t<T>>;
  switch (op) {
    case ReduceOp::sum:
      return Kernel<Bits, ReduceOp::sum>::run;
    case ReduceOp::prod:
      return Kernel<Bits, ReduceOp::prod>::run;
    case ReduceOp::max:
      return Kernel<Plain<T>, ReduceOp::max>::run;
    case ReduceOp::min:
      return Kernel<Plain<T>, ReduceOp::min>::run;
    case ReduceOp::avg:
      return Kernel<Plain<T>, ReduceOp::avg>::run;
    case ReduceOp::premul_sum:
      return Kernel<Bits, ReduceOp::premul_sum>::run;
  }
  return nullptr;
}

ReduceKernel bool_kernel(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::max:
      return Kernel<Bool, ReduceOp::max>::run;
    case ReduceOp::prod:
    case ReduceOp::min:
      return Kernel<Bool, ReduceOp::min>::run;
    case ReduceOp::avg:
    case ReduceOp::premul_sum:
      return nullptr;
  }
  return nullptr;
}

ReduceKernel integer_kernel_here(fcclDataType_t dtype, ReduceOp op) {
  switch (dtype) {
    case fcclInt8:
      return kernel_of<int8_t>(op);
    case fcclUint8:
      return kernel_of<uint8_t>(op);
    case fcclInt16:
      return kernel_of<int16_t>(op);
    case fcclUint16:
      return kernel_of<uint16_t>(op);
    case fcclInt32:
      return kernel_of<int32_t>(op);
    case fcclUint32:
      return kernel_of<uint32_t>(op);
    case fcclInt64:
      return kernel_of<int64_t>(op);
    case fcclUint64:
      return kernel_of<uint64_t>(op);
    case fcclBool:
      return bool_kernel(op);
    default:
      return nullptr;
  }
}

}  // namespace fccl::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fccl {

HWY_EXPORT(integer_kernel_here);
ReduceKernel integer_kernel(fcclDataType_t dtype, ReduceOp op) { return HWY_DYNAMIC_DISPATCH(integer_kernel_here)(dtype, op); }

}  // namespace fccl
#endif
