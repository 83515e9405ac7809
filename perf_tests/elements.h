// The element types and operators that the command line can name.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "fccl/fccl.hpp"

namespace fccl::perf {

struct ElementType {
  std::string_view name;
  fcclDataType_t datatype;
  std::size_t bytes;
  bool reducible;  // part of `-d all` for collectives that reduce
};

struct Operator {
  std::string_view name;
  Op op;
  bool available;
};

std::span<const ElementType> element_types();
std::span<const Operator> operators();

// Null if there is none of that name.
const ElementType* find_element_type(std::string_view name);
const Operator* find_operator(std::string_view name);

}  // namespace fccl::perf
