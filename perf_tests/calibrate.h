// --calibrate: measures the constants by which plans between hosts are chosen, and prints them as FCCL_COSTS takes them.
#pragma once

#include "run.h"

namespace fccl::perf {

// All processes call this together, before there are other threads. Changes FCCL_COSTS and FCCL_ALGORITHM of this process.
// Returns ExitCode::usage if all ranks are on one host.
ExitCode calibrate(Run& run);

}  // namespace fccl::perf
