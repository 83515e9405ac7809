// Installed GPUs: makes open_device and current_device find simulated GPUs, in a program that links fccl_installed_gpus.
#pragma once

#include <memory>

#include "devices/simulated_gpu.h"

namespace fccl::core::simulated {

// From now on the GPU with its ordinal. The last one of an ordinal counts.
void install(std::shared_ptr<SimulatedGpu> gpu);
// Removes all GPUs from the process.
void uninstall_all();
// Sets the result of current_device() in the calling thread; -1 stands for no GPU.
void set_current_device(int ordinal);

}  // namespace fccl::core::simulated
