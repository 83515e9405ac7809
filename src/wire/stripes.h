// Stripes: cuts a message over the rails between two members, so that both know how many arrivals complete it.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/rounding.h"

namespace fccl::core {

// The limits that two members have in common.
struct SharedRails {
  int number = 1;
  size_t write_bytes = 1;  // the largest write
};

struct Stripes {
  // For shorter messages a second rail gains nothing.
  static constexpr size_t kLeastBytes = 16 << 10;

  size_t total;
  size_t piece;

  static Stripes of(size_t total, const SharedRails& rails) {
    const size_t even = (total / rails.number + 64) / 64 * 64;
    return {total, std::min(std::max(even, kLeastBytes), rails.write_bytes)};
  }
  size_t count() const { return divided_up(total, piece); }
  size_t offset(size_t stripe) const { return stripe * piece; }
  size_t bytes(size_t stripe) const { return std::min(piece, total - offset(stripe)); }
};

}  // namespace fccl::core
