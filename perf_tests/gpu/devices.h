// Chooses the GPU of each rank of this process.
#pragma once

#include <vector>

#include "arguments.h"
#include "environment.h"
#include "launch/processes.h"
#include "launch/team.h"

namespace fccl::perf {

// Returns one for each thread of this process; all processes call this together, before there are other threads. As in
// nccl-tests, each rank of a host gets the next GPU, beginning at FCCL_TESTS_DEVICE if it is set, which then holds for every
// process; if there are fewer GPUs, ranks share them. Error: no driver, no GPU, or an impossible setting.
Result<std::vector<DeviceInfo>> choose_gpus(const Arguments& arguments, const Environment& environment,
                                            const Processes& processes);
// Returns the GPUs of a process whose first rank has the place `first` among the ranks of its host.
std::vector<int> ordinals_of(int first, int ranks, int gpus);

}  // namespace fccl::perf
