// The kernels of integers and of truth values, compiled once per instruction set.
#include "kernels/families.h"
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/integer_kernels.cpp"
#include <hwy/foreach_target.h>
// These includes must follow foreach_target.h.
#include <hwy/highway.h>

#include "kernels/tree.h"

HWY_BEFORE_NAMESPACE();
namespace fccl::core::HWY_NAMESPACE {

// Every operator but min, max and avg gives the same bits with and without a sign.
template <class T>
ReduceKernel kernel_of(ReduceOp op, Divisor divisor) {
  using Bits = Plain<std::make_unsigned_t<T>>;
  switch (op) {
    case ReduceOp::sum:
      return Kernel<ReduceOp::sum, Bits>::run;
    case ReduceOp::prod:
      return Kernel<ReduceOp::prod, Bits>::run;
    case ReduceOp::max:
      return Kernel<ReduceOp::max, Plain<T>>::run;
    case ReduceOp::min:
      return Kernel<ReduceOp::min, Plain<T>>::run;
    case ReduceOp::avg:
      return divisor == Divisor::source_count ? Kernel<ReduceOp::avg, Plain<T>>::run
                                              : Kernel<ReduceOp::avg, Plain<T>>::run_with_divisor;
    case ReduceOp::band:
      return Kernel<ReduceOp::band, Bits>::run;
    case ReduceOp::bor:
      return Kernel<ReduceOp::bor, Bits>::run;
    case ReduceOp::bxor:
      return Kernel<ReduceOp::bxor, Bits>::run;
    case ReduceOp::premul_sum:
      return Kernel<ReduceOp::premul_sum, Bits>::run;
  }
  return nullptr;
}

ReduceKernel bool_kernel(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::max:
    case ReduceOp::bor:
      return Kernel<ReduceOp::max, Bool>::run;
    case ReduceOp::prod:
    case ReduceOp::min:
    case ReduceOp::band:
      return Kernel<ReduceOp::min, Bool>::run;
    case ReduceOp::bxor:
      return Kernel<ReduceOp::bxor, Bool>::run;
    case ReduceOp::avg:
    case ReduceOp::premul_sum:
      return nullptr;
  }
  return nullptr;
}

ReduceKernel integer_kernel_here(fcclDataType_t dtype, ReduceOp op, Divisor divisor) {
  switch (dtype) {
    case fcclInt8:
      return kernel_of<int8_t>(op, divisor);
    case fcclUint8:
      return kernel_of<uint8_t>(op, divisor);
    case fcclInt16:
      return kernel_of<int16_t>(op, divisor);
    case fcclUint16:
      return kernel_of<uint16_t>(op, divisor);
    case fcclInt32:
      return kernel_of<int32_t>(op, divisor);
    case fcclUint32:
      return kernel_of<uint32_t>(op, divisor);
    case fcclInt64:
      return kernel_of<int64_t>(op, divisor);
    case fcclUint64:
      return kernel_of<uint64_t>(op, divisor);
    case fcclBool:
      return bool_kernel(op);
    default:
      return nullptr;
  }
}

}  // namespace fccl::core::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fccl::core {

HWY_EXPORT(integer_kernel_here);
ReduceKernel integer_kernel(fcclDataType_t dtype, ReduceOp op, Divisor divisor) {
  return HWY_DYNAMIC_DISPATCH(integer_kernel_here)(dtype, op, divisor);
}

}  // namespace fccl::core
#endif
