// The names behind dtype.h.
#include "base/dtype.h"

#include <array>

namespace fccl {
namespace {

constexpr std::array<const char*, fcclNumTypes> kDataTypes{"int8",       "uint8",      "int32",   "uint32",  "int64",
                                                           "uint64",     "float16",    "float32", "float64", "bfloat16",
                                                           "float8e4m3", "float8e5m2", "int16",   "uint16",  "bool"};
constexpr std::array<const char*, 6> kReduceOps{"sum", "prod", "max", "min", "avg", "premul_sum"};

}  // namespace

const char* name_of(fcclDataType_t dtype) { return is_valid(dtype) ? kDataTypes[dtype] : "?"; }

const char* name_of(ReduceOp op) {
  return static_cast<size_t>(op) < kReduceOps.size() ? kReduceOps[static_cast<size_t>(op)] : "?";
}

}  // namespace fccl
