// CudaUser: a GpuUser by CUDA's driver, be it the real one or the fake.
#pragma once

#include <memory>

#include "devices/gpu_user.h"

namespace fccl::core {

// Opens the device first. Error: that of open_device.
Result<std::unique_ptr<GpuUser>> open_cuda_user(int ordinal);

}  // namespace fccl::core
