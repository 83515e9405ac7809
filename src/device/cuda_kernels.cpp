// Loads kernels out of the image in the library.
#include "device/cuda_kernels.h"

#include <fmt/format.h>

#include "device/sum_image.h"

namespace fccl::core {
namespace {

// The least compute capability that the image has code for.
constexpr int kLeastMajor = 8;

}  // namespace

std::string CudaKernels::why_none(const CudaDriver& driver, int major) {
  if (sum_image().empty()) return "FCCL was built without nvcc";
  if (driver.function_load == nullptr) return "the driver is older than that of CUDA 12.4";
  if (major < kLeastMajor) return fmt::format("its compute capability is below {}.0", kLeastMajor);
  return "";
}

Result<void> CudaKernels::load(const CudaDriver& driver, size_t sources, const CheckResult& check) {
  const std::scoped_lock lock(mutex_);
  if (image_ == nullptr)
    FCCL_TRY(check(driver.module_load_data(&image_, sum_image().data()), "load the kernels of sums", "cuModuleLoadData"));
  for (size_t kernel = 0; kernel < kSumKernels; ++kernel) {
    if (sources_of_sum_kernel(kernel) != sources || functions_[kernel] != nullptr) continue;
    const char* const name = name_of_sum_kernel(kernel);
    CUfunction found = nullptr;
    FCCL_TRY(check(driver.module_get_function(&found, image_, name), fmt::format("find the kernel {}", name).c_str(),
                   "cuModuleGetFunction"));
    FCCL_TRY(check(driver.function_load(found), fmt::format("load the kernel {}", name).c_str(), "cuFuncLoad"));
    functions_[kernel] = found;
  }
  return {};
}

}  // namespace fccl::core
