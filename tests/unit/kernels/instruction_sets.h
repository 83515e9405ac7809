// The instruction sets that the kernels are compiled for and that this processor has.
#pragma once

#include "kernels/targets.h"
// This include must follow targets.h.
#include <hwy/highway.h>

#include <cstdint>
#include <vector>

namespace fccl::core::testing {

// Asks once, because the question leaves a virtual machine. Highway's lists lack its plain set, since Highway's own library was
// compiled without it.
inline const std::vector<int64_t>& instruction_sets() {
  static const std::vector<int64_t> sets = [] {
    std::vector<int64_t> all = hwy::SupportedAndGeneratedTargets();
    if ((HWY_TARGETS & HWY_EMU128) != 0) all.push_back(HWY_EMU128);
    return all;
  }();
  return sets;
}

// Directs all kernels to one instruction set while it lives, and afterwards to the best one, the first in the list.
class InstructionSet {
 public:
  explicit InstructionSet(int64_t target) { hwy::GetChosenTarget().Update(target); }
  ~InstructionSet() { hwy::GetChosenTarget().Update(instruction_sets().front()); }
  InstructionSet(const InstructionSet&) = delete;
  InstructionSet& operator=(const InstructionSet&) = delete;
};

}  // namespace fccl::core::testing
