// Looks up the names of data types and operators.
#include "base/dtype.h"

#include <array>

namespace fccl::core {
namespace {

constexpr std::array<const char*, 9> kReduceOps{"sum", "prod", "max", "min", "avg", "band", "bor", "bxor", "premul_sum"};

}  // namespace

const char* name_of(fcclDataType_t dtype) { return is_valid(dtype) ? kDataTypes[dtype].name : "?"; }

const char* name_of(ReduceOp op) {
  return static_cast<size_t>(op) < kReduceOps.size() ? kReduceOps[static_cast<size_t>(op)] : "?";
}

}  // namespace fccl::core
