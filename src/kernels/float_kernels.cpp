// The kernels of floating-point elements, compiled once per instruction set.
#include "kernels/families.h"
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/float_kernels.cpp"
#include <hwy/foreach_target.h>
// These includes must follow foreach_target.h.
#include <hwy/highway.h>

#include "kernels/tree.h"

HWY_BEFORE_NAMESPACE();
namespace fccl::core::HWY_NAMESPACE {

template <class Element>
ReduceKernel kernel_of(ReduceOp op, Divisor divisor) {
  switch (op) {
    case ReduceOp::sum:
      return Kernel<ReduceOp::sum, Element>::run;
    case ReduceOp::prod:
      return Kernel<ReduceOp::prod, Element>::run;
    case ReduceOp::max:
      return Kernel<ReduceOp::max, Element>::run;
    case ReduceOp::min:
      return Kernel<ReduceOp::min, Element>::run;
    case ReduceOp::avg:
      return divisor == Divisor::source_count ? Kernel<ReduceOp::avg, Element>::run
                                              : Kernel<ReduceOp::avg, Element>::run_with_divisor;
    case ReduceOp::premul_sum:
      return Kernel<ReduceOp::premul_sum, Element>::run;
    case ReduceOp::band:
    case ReduceOp::bor:
    case ReduceOp::bxor:
      return nullptr;
  }
  return nullptr;
}

ReduceKernel float_kernel_here(fcclDataType_t dtype, ReduceOp op, Divisor divisor) {
  switch (dtype) {
    case fcclFloat16:
      return kernel_of<Float16>(op, divisor);
    case fcclFloat32:
      return kernel_of<Plain<float>>(op, divisor);
    case fcclFloat64:
      return kernel_of<Plain<double>>(op, divisor);
    case fcclBfloat16:
      return kernel_of<Bfloat16>(op, divisor);
    case fcclFloat8e4m3:
      return kernel_of<Narrow<E4m3>>(op, divisor);
    case fcclFloat8e5m2:
      return kernel_of<Narrow<E5m2>>(op, divisor);
    default:
      return nullptr;
  }
}

}  // namespace fccl::core::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fccl::core {

HWY_EXPORT(float_kernel_here);
ReduceKernel float_kernel(fcclDataType_t dtype, ReduceOp op, Divisor divisor) {
  return HWY_DYNAMIC_DISPATCH(float_kernel_here)(dtype, op, divisor);
}

}  // namespace fccl::core
#endif
