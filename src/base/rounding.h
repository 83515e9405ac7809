// Division and rounding of whole numbers upwards.
#pragma once

#include <concepts>

namespace fccl::core {

// `count` is at least 0 and `unit` at least 1; count + unit does not overflow.
template <std::integral T>
constexpr T divided_up(T count, T unit) {
  return (count + unit - 1) / unit;
}

// Returns the first multiple of `unit` that is not below `count`.
template <std::integral T>
constexpr T rounded_up(T count, T unit) {
  return divided_up(count, unit) * unit;
}

}  // namespace fccl::core
