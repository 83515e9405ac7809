// The tables behind -d and -o.
#include "elements.h"

#include <algorithm>
#include <utility>

namespace fccl::perf {
namespace {

constexpr ElementType kTypes[] = {
    {"int8", fcclInt8, 1, Family::signed_integer},   {"uint8", fcclUint8, 1, Family::unsigned_integer},
    {"int16", fcclInt16, 2, Family::signed_integer}, {"uint16", fcclUint16, 2, Family::unsigned_integer},
    {"int32", fcclInt32, 4, Family::signed_integer}, {"uint32", fcclUint32, 4, Family::unsigned_integer},
    {"int64", fcclInt64, 8, Family::signed_integer}, {"uint64", fcclUint64, 8, Family::unsigned_integer},
    {"half", fcclFloat16, 2, Family::floating},      {"float", fcclFloat32, 4, Family::floating},
    {"double", fcclFloat64, 8, Family::floating},    {"bfloat16", fcclBfloat16, 2, Family::floating},
    {"f8e4m3", fcclFloat8e4m3, 1, Family::floating}, {"f8e5m2", fcclFloat8e5m2, 1, Family::floating},
    {"bool", fcclBool, 1, Family::boolean},
};

constexpr Operator kOperators[] = {{"sum", sum}, {"prod", prod}, {"min", min},
                                   {"max", max}, {"avg", avg},   {"mulsum", sum, true}};

// Names that torch's users know.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"fp16", "half"},     {"float16", "half"}, {"bf16", "bfloat16"},  {"fp32", "float"},
    {"float32", "float"}, {"fp64", "double"},  {"float64", "double"},
};

template <class Row>
const Row* find(std::span<const Row> rows, std::string_view name) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

std::span<const ElementType> element_types() { return kTypes; }
std::span<const Operator> operators() { return kOperators; }

const ElementType* find_element_type(std::string_view name) {
  for (const auto& [other, own] : kOtherNames)
    if (name == other) return find(element_types(), own);
  return find(element_types(), name);
}

const Operator* find_operator(std::string_view name) { return find(operators(), name); }

}  // namespace fccl::perf
