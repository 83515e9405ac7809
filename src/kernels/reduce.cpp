// Finds the kernel for an operator on a data type, for a sum of one level or for either level of a sum between hosts.
#include "kernels/reduce.h"

#include <fmt/format.h>

#include "base/signature.h"
#include "kernels/families.h"

namespace fccl::core {
namespace {

ReduceKernel kernel_of_one_type(fcclDataType_t dtype, ReduceOp op, Divisor divisor) {
  const ReduceKernel found = float_kernel(dtype, op, divisor);
  return found != nullptr ? found : integer_kernel(dtype, op, divisor);
}

}  // namespace

ReduceKernel reduce_kernel(fcclDataType_t dtype, ReduceOp op) { return kernel_of_one_type(dtype, op, Divisor::source_count); }

std::string no_kernel(fcclDataType_t dtype, ReduceOp op) {
  const char* what = dtype == fcclBool
                         ? "truth values have sum, max and bor, which are or, prod, min and band, which are and, and bxor"
                         : "band, bor and bxor are of integers and of bool";
  return fmt::format("{} of {} has no meaning: {}", name_of(op), name_of(dtype), what);
}

ReduceKernel float32_kernel(fcclDataType_t dtype, ReduceOp op) { return widening_kernel(dtype, op); }

ReduceKernel kernel_of(const Signature& s) {
  if (!is_reduction(s.collective)) return nullptr;
  return s.widens ? float32_kernel(s.dtype, s.op) : reduce_kernel(s.dtype, s.op);
}

fcclDataType_t partial_type(fcclDataType_t dtype, WireType wire) {
  const bool is_narrow = dtype == fcclFloat16 || dtype == fcclBfloat16 || dtype == fcclFloat8e4m3 || dtype == fcclFloat8e5m2;
  return is_narrow && wire == WireType::float32 ? fcclFloat32 : dtype;
}

ReduceKernel partial_kernel(fcclDataType_t dtype, ReduceOp op, WireType wire) {
  if (reduce_kernel(dtype, op) == nullptr) return nullptr;
  const ReduceOp of_partial = op == ReduceOp::avg ? ReduceOp::sum : op;
  return partial_type(dtype, wire) == dtype ? reduce_kernel(dtype, of_partial) : widening_kernel(dtype, of_partial);
}

ReduceKernel total_kernel(fcclDataType_t dtype, ReduceOp op, WireType wire) {
  if (reduce_kernel(dtype, op) == nullptr) return nullptr;
  const ReduceOp of_total = op == ReduceOp::premul_sum ? ReduceOp::sum : op;
  if (partial_type(dtype, wire) != dtype) return narrowing_kernel(dtype, of_total);
  return kernel_of_one_type(dtype, of_total, Divisor::first_scalar);
}

}  // namespace fccl::core
