// Landing: how the bytes of a copy arrive, which is in no order.
#pragma once

#include <cstddef>

#include "transports/dice.h"

namespace fccl::core::simulated {

// A copy as the thread of its queue does it; addresses are real ones.
struct RealCopy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  size_t bytes = 0;
  size_t rows = 1;
  size_t to_pitch = 0;
  size_t from_pitch = 0;
  // Others than this GPU may look at `to`: the copy overwrites it with poison first, so that who looks early finds no old
  // bytes.
  bool is_seen = false;
};

void land(const RealCopy& copy, Dice& dice);
// The two parts of it: the host finds poison, and then the bytes.
void poison(const RealCopy& copy);
void arrive(const RealCopy& copy, Dice& dice);

}  // namespace fccl::core::simulated
