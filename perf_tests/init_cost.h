// What init took, over all ranks of a run.
#pragma once

#include <string>
#include <vector>

#include "fccl/fccl.hpp"
#include "launch/team.h"

namespace fccl::perf {

// The numbers of one rank and how all ranks' make one: of each step the longest, of what was sent and shared the sum.
std::vector<Part> parts_of(const fcclInitCost_t& cost);
// Two lines, of what has become of these parts of `ranks` ranks.
std::vector<std::string> lines_of_init(const std::vector<double>& combined, int ranks);

}  // namespace fccl::perf
