// The instruction sets that the kernels are compiled for and this processor has, for tests that run on each of them.
#pragma once

#include "kernels/targets.h"
// Behind it.
#include <hwy/highway.h>

#include <cstdint>
#include <vector>

namespace fccl::testing {

// Asked for once: the question leaves a virtual machine. Highway's plain set is in none of its lists, since its own library was
// compiled without.
inline const std::vector<int64_t>& instruction_sets() {
  static const std::vector<int64_t> sets = [] {
    std::vector<int64_t> all = hwy::SupportedAndGeneratedTargets();
    if ((HWY_TARGETS & HWY_EMU128) != 0) all.push_back(HWY_EMU128);
    return all;
  }();
  return sets;
}

// What is dispatched during its life goes to one instruction set, and afterwards to the best, which is the first.
class InstructionSet {
 public:
  explicit InstructionSet(int64_t target) { hwy::GetChosenTarget().Update(target); }
  ~InstructionSet() { hwy::GetChosenTarget().Update(instruction_sets().front()); }
  InstructionSet(const InstructionSet&) = delete;
  InstructionSet& operator=(const InstructionSet&) = delete;
};

}  // namespace fccl::testing
