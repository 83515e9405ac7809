// The one main of all perf binaries: times and checks a collective over a sweep of sizes, as nccl-tests does.
#pragma once

#include "collective.h"

namespace fccl::perf {

// Runs what the command line asks and returns the exit status. Call it once, from main.
int run(int argc, char** argv, const Collective& collective);

}  // namespace fccl::perf
