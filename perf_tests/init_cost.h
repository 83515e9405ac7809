// Costs of init, over all ranks of a run.
#pragma once

#include <string>
#include <vector>

#include "fccl/fccl.hpp"
#include "launch/team.h"

namespace fccl::perf {

// Returns the numbers of one rank, and how those of all ranks are combined: the maximum of each step, the sum of the bytes sent
// and shared.
std::vector<Part> parts_of(const fcclInitCost_t& cost);
// Makes two lines from the combined parts of `ranks` ranks.
std::vector<std::string> lines_of_init(const std::vector<double>& combined, int ranks);

}  // namespace fccl::perf
