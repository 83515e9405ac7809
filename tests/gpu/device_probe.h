// A probe whose ranks have the GPU open by CUDA's runtime.
#pragma once

#include <vector>

#include "probe.h"

namespace fccl::gpu {

int run_probe(int question, const std::vector<Case>& cases, int argc, char** argv);

}  // namespace fccl::gpu
