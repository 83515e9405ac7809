// Numbers operators from the first number behind those that fccl.h names.
#include "communicator/operators.h"

#include <fmt/format.h>

namespace fccl::core {

fcclRedOp_t Operators::create(const Factor& factor) {
  size_t index = 0;
  while (index < factors_.size() && factors_[index]) ++index;
  if (index == factors_.size()) factors_.emplace_back();
  factors_[index] = factor;
  return static_cast<fcclRedOp_t>(fcclNumOps + index);
}

// Returns the operator's index in factors_.
Result<size_t> Operators::find(fcclRedOp_t op) const {
  const size_t index = static_cast<size_t>(op) - fcclNumOps;
  if (op >= fcclNumOps && index < factors_.size() && factors_[index]) return index;
  return fail(fcclInvalidArgument, fmt::format("{} is not an operator that fcclRedOpCreatePreMulSum made for this communicator",
                                               static_cast<int>(op)));
}

Result<void> Operators::destroy(fcclRedOp_t op) {
  FCCL_TRY_ASSIGN(const size_t index, find(op));
  factors_[index].reset();
  return {};
}

Result<Operators::Factor> Operators::factor_of(fcclRedOp_t op, fcclDataType_t dtype) const {
  FCCL_TRY_ASSIGN(const size_t index, find(op));
  const Factor& factor = *factors_[index];
  if (factor.dtype == dtype) return factor;
  return fail(fcclInvalidArgument,
              fmt::format("the operator was made for {}, the call is of {}", name_of(factor.dtype), name_of(dtype)));
}

}  // namespace fccl::core
