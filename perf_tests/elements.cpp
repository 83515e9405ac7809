// The tables behind -d and -o.
#include "elements.h"

#include <algorithm>

namespace fccl::perf {
namespace {

constexpr ElementType kTypes[] = {
    {"int8", fcclInt8, 1, false},         {"uint8", fcclUint8, 1, false},       {"int16", fcclInt16, 2, false},
    {"uint16", fcclUint16, 2, false},     {"int32", fcclInt32, 4, true},        {"uint32", fcclUint32, 4, false},
    {"int64", fcclInt64, 8, true},        {"uint64", fcclUint64, 8, false},     {"half", fcclFloat16, 2, true},
    {"float", fcclFloat32, 4, true},      {"double", fcclFloat64, 8, true},     {"bfloat16", fcclBfloat16, 2, true},
    {"f8e4m3", fcclFloat8e4m3, 1, false}, {"f8e5m2", fcclFloat8e5m2, 1, false}, {"bool", fcclBool, 1, false},
};

constexpr Operator kOperators[] = {
    {"sum", sum, true}, {"prod", prod, false}, {"min", min, true},
    {"max", max, true}, {"avg", avg, true},    {"mulsum", sum, false},
};

template <class Row>
const Row* find(std::span<const Row> rows, std::string_view name) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

std::span<const ElementType> element_types() { return kTypes; }
std::span<const Operator> operators() { return kOperators; }
const ElementType* find_element_type(std::string_view name) { return find(element_types(), name); }
const Operator* find_operator(std::string_view name) { return find(operators(), name); }

}  // namespace fccl::perf
