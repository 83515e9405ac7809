// The kernels of floating-point elements, compiled once per instruction set.
#include "kernels/families.h"
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/float_kernels.cpp"
#include <hwy/foreach_target.h>
// Behind it.
#include <hwy/highway.h>

#include "kernels/tree.h"

HWY_BEFORE_NAMESPACE();
namespace fccl::HWY_NAMESPACE {

template <class Element>
ReduceKernel kernel_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return Kernel<Element, ReduceOp::sum>::run;
    case ReduceOp::prod:
      return Kernel<Element, ReduceOp::prod>::run;
    case ReduceOp::max:
      return Kernel<Element, ReduceOp::max>::run;
    case ReduceOp::min:
      return Kernel<Element, ReduceOp::min>::run;
    case ReduceOp::avg:
      return Kernel<Element, ReduceOp::avg>::run;
    case ReduceOp::premul_sum:
      return Kernel<Element, ReduceOp::premul_sum>::run;
  }
  return nullptr;
}

ReduceKernel float_kernel_here(fcclDataType_t dtype, ReduceOp op) {
  switch (dtype) {
    case fcclFloat16:
      return kernel_of<Float16>(op);
    case fcclFloat32:
      return kernel_of<Plain<float>>(op);
    case fcclFloat64:
      return kernel_of<Plain<double>>(op);
    case fcclBfloat16:
      return kernel_of<Bfloat16>(op);
    case fcclFloat8e4m3:
      return kernel_of<Narrow<E4m3>>(op);
    case fcclFloat8e5m2:
      return kernel_of<Narrow<E5m2>>(op);
    default:
      return nullptr;
  }
}

}  // namespace fccl::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fccl {

HWY_EXPORT(float_kernel_here);
ReduceKernel float_kernel(fcclDataType_t dtype, ReduceOp op) { return HWY_DYNAMIC_DISPATCH(float_kernel_here)(dtype, op); }

}  // namespace fccl
#endif
