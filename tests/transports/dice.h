// Dice: draws that depend on a seed alone, and not on the standard library.
#pragma once

#include <cstdint>
#include <random>

namespace fccl::core::simulated {

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}

  // A number from 0 to `last`.
  uint64_t up_to(uint64_t last) { return last == UINT64_MAX ? engine_() : engine_() % (last + 1); }
  // True in so many of a thousand cases.
  bool per_mille(int cases) { return cases > 0 && up_to(999) < static_cast<uint64_t>(cases); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace fccl::core::simulated
