// The tables behind dtype.h.
#include "base/dtype.h"

#include <array>

namespace fccl {
namespace {

struct DataTypeRow {
  size_t size;
  const char* name;
};

constexpr std::array<DataTypeRow, fcclNumTypes> kDataTypes{{{1, "int8"},
                                                            {1, "uint8"},
                                                            {4, "int32"},
                                                            {4, "uint32"},
                                                            {8, "int64"},
                                                            {8, "uint64"},
                                                            {2, "float16"},
                                                            {4, "float32"},
                                                            {8, "float64"},
                                                            {2, "bfloat16"},
                                                            {1, "float8e4m3"},
                                                            {1, "float8e5m2"},
                                                            {2, "int16"},
                                                            {2, "uint16"},
                                                            {1, "bool"}}};

constexpr std::array<const char*, 6> kReduceOps{"sum", "prod", "max", "min", "avg", "premul_sum"};

}  // namespace

bool is_valid(fcclDataType_t dtype) { return static_cast<unsigned>(dtype) < kDataTypes.size(); }

size_t size_of(fcclDataType_t dtype) { return is_valid(dtype) ? kDataTypes[dtype].size : 0; }

const char* name_of(fcclDataType_t dtype) { return is_valid(dtype) ? kDataTypes[dtype].name : "?"; }

const char* name_of(ReduceOp op) {
  return static_cast<size_t>(op) < kReduceOps.size() ? kReduceOps[static_cast<size_t>(op)] : "?";
}

}  // namespace fccl
