// The element types and operators that the command line can name.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "fccl/fccl.hpp"

namespace fccl::perf {

enum class Family { boolean, signed_integer, unsigned_integer, floating };

struct ElementType {
  std::string_view name;
  fcclDataType_t datatype;
  std::size_t bytes;
  Family family;
};

struct Operator {
  std::string_view name;
  Op op;
  // True if ranks multiply their inputs by scalar_of(rank) before they are summed.
  bool scaled = false;
};

std::span<const ElementType> element_types();
std::span<const Operator> operators();

// Return null for an unknown name. A type has the names of nccl-tests, and of torch: fp16 is half.
const ElementType* find_element_type(std::string_view name);
const Operator* find_operator(std::string_view name);

// True if the operator means something for the type; a mean or a multiple of booleans does not.
constexpr bool applies(const Operator& op, const ElementType& type) {
  return type.family != Family::boolean || (op.op != Op::avg && !op.scaled);
}

// Returns the factor of a rank's input under `mulsum`; as in nccl-tests.
constexpr int scalar_of(int rank) { return 1 + rank % 2; }

}  // namespace fccl::perf
