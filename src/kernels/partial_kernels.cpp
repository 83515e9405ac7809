// The kernels between narrow floating-point elements and partial sums in float32, compiled once per instruction set.
#include "kernels/families.h"
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/partial_kernels.cpp"
#include <hwy/foreach_target.h>
// These includes must follow foreach_target.h.
#include <hwy/highway.h>

#include "kernels/tree.h"

HWY_BEFORE_NAMESPACE();
namespace fccl::core::HWY_NAMESPACE {

template <class Element>
ReduceKernel widening(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return Kernel<ReduceOp::sum, Element, Plain<float>>::run;
    case ReduceOp::prod:
      return Kernel<ReduceOp::prod, Element, Plain<float>>::run;
    case ReduceOp::max:
      return Kernel<ReduceOp::max, Element, Plain<float>>::run;
    case ReduceOp::min:
      return Kernel<ReduceOp::min, Element, Plain<float>>::run;
    case ReduceOp::premul_sum:
      return Kernel<ReduceOp::premul_sum, Element, Plain<float>>::run;
    case ReduceOp::avg:
      return Kernel<ReduceOp::avg, Element, Plain<float>>::run;
    case ReduceOp::band:
    case ReduceOp::bor:
    case ReduceOp::bxor:
      return nullptr;
  }
  return nullptr;
}

template <class Element>
ReduceKernel narrowing(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return Kernel<ReduceOp::sum, Plain<float>, Element>::run;
    case ReduceOp::prod:
      return Kernel<ReduceOp::prod, Plain<float>, Element>::run;
    case ReduceOp::max:
      return Kernel<ReduceOp::max, Plain<float>, Element>::run;
    case ReduceOp::min:
      return Kernel<ReduceOp::min, Plain<float>, Element>::run;
    case ReduceOp::avg:
      return Kernel<ReduceOp::avg, Plain<float>, Element>::run_with_divisor;
    case ReduceOp::band:
    case ReduceOp::bor:
    case ReduceOp::bxor:
    case ReduceOp::premul_sum:
      return nullptr;
  }
  return nullptr;
}

ReduceKernel widening_kernel_here(fcclDataType_t dtype, ReduceOp op) {
  switch (dtype) {
    case fcclFloat16:
      return widening<Float16>(op);
    case fcclBfloat16:
      return widening<OrderedBfloat16>(op);
    case fcclFloat8e4m3:
      return widening<Narrow<E4m3>>(op);
    case fcclFloat8e5m2:
      return widening<Narrow<E5m2>>(op);
    default:
      return nullptr;
  }
}

ReduceKernel narrowing_kernel_here(fcclDataType_t dtype, ReduceOp op) {
  switch (dtype) {
    case fcclFloat16:
      return narrowing<Float16>(op);
    case fcclBfloat16:
      return narrowing<OrderedBfloat16>(op);
    case fcclFloat8e4m3:
      return narrowing<Narrow<E4m3>>(op);
    case fcclFloat8e5m2:
      return narrowing<Narrow<E5m2>>(op);
    default:
      return nullptr;
  }
}

}  // namespace fccl::core::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fccl::core {

HWY_EXPORT(widening_kernel_here);
HWY_EXPORT(narrowing_kernel_here);
ReduceKernel widening_kernel(fcclDataType_t dtype, ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(widening_kernel_here)(dtype, op);
}
ReduceKernel narrowing_kernel(fcclDataType_t dtype, ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(narrowing_kernel_here)(dtype, op);
}

}  // namespace fccl::core
#endif
