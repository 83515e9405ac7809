// Installed GPUs: makes open_device and current_device find simulated GPUs, in a program that links fccl_installed_gpus.
#pragma once

#include <memory>

#include "devices/simulated_gpu.h"

namespace fccl::simulated {

// From now on the GPU with its ordinal. The last one of an ordinal counts.
void install(std::shared_ptr<SimulatedGpu> gpu);
// From now on there is none.
void uninstall_all();
// What current_device() says in the calling thread from now on; -1 for none.
void set_current_device(int ordinal);

}  // namespace fccl::simulated
