// CudaKernels: the kernels of sums in a GPU's context.
#pragma once

#include <cuda.h>

#include <array>
#include <mutex>
#include <string>

#include "device/cuda_driver.h"
#include "device/cuda_memory.h"
#include "device/reduction.h"

namespace fccl::core {

// A CudaDevice owns it. They stay loaded as long as the context, which is as long as the process. Any thread may call.
class CudaKernels {
 public:
  // Why a GPU has no kernels of sums; "" if it has. `major`: of its compute capability.
  static std::string why_none(const CudaDriver& driver, int major);

  // Loads the kernels of so many sources to the last byte: what the driver loads later waits for the GPU's work.
  Result<void> load(const CudaDriver& driver, size_t sources, const CheckResult& check);
  // Null for a kernel that this thread, or one that it has waited for, has not loaded.
  CUfunction of(size_t kernel) const { return functions_.at(kernel); }

 private:
  std::mutex mutex_;
  CUmodule image_ = nullptr;
  std::array<CUfunction, kSumKernels> functions_{};
};

}  // namespace fccl::core
