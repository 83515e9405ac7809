// The operators, and for which types each of them means something.
#pragma once

#include "base/dtype.h"

namespace fccl::core::testing {

inline constexpr ReduceOp kEveryOperator[] = {ReduceOp::sum, ReduceOp::prod, ReduceOp::max,
                                              ReduceOp::min, ReduceOp::avg,  ReduceOp::band,
                                              ReduceOp::bor, ReduceOp::bxor, ReduceOp::premul_sum};

inline bool is_bitwise(ReduceOp op) { return op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor; }
inline bool is_integer(fcclDataType_t dtype) {
  switch (dtype) {
    case fcclInt8:
    case fcclUint8:
    case fcclInt16:
    case fcclUint16:
    case fcclInt32:
    case fcclUint32:
    case fcclInt64:
    case fcclUint64:
      return true;
    default:
      return false;
  }
}
inline bool has_meaning(fcclDataType_t dtype, ReduceOp op) {
  if (dtype == fcclBool) return op != ReduceOp::avg && op != ReduceOp::premul_sum;
  return is_integer(dtype) || !is_bitwise(op);
}

}  // namespace fccl::core::testing
