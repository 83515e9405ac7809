// Which GPU each rank of this process uses.
#pragma once

#include <vector>

#include "arguments.h"
#include "environment.h"
#include "launch/processes.h"
#include "launch/team.h"

namespace fccl::perf {

// One for each thread of this process; all processes call this together, before there are other threads. As in nccl-tests each
// rank of a host has the next GPU, from FCCL_TESTS_DEVICE on if it is set, which then holds for every process; where there are
// fewer GPUs, ranks share them. Error: there is no driver or no GPU, or a setting that cannot be.
Result<std::vector<DeviceInfo>> choose_gpus(const Arguments& arguments, const Environment& environment,
                                            const Processes& processes);
// The GPU of each rank of a process whose first rank has the place `first` among the ranks of its host.
std::vector<int> ordinals_of(int first, int ranks, int gpus);

}  // namespace fccl::perf
