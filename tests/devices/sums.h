// Sums: the kernels of kernels/gpu/sum.cu as a simulated GPU runs them: the same arithmetic, on the CPU.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>

#include "devices/gpu.h"
#include "kernels/gpu/sum.h"

namespace fccl::core::simulated {

// One of the kernels. Tables of the program hold them.
struct SumKernel {
  std::string_view name;
  void (*run)(const gpu::SumWork& work);  // addresses as this process has them
  int sources;
  bool has_factors;
  size_t source_bytes, result_bytes;  // the bytes of one element

  // In LoadedKernels.
  size_t number() const { return std::hash<std::string_view>{}(name); }
};

std::span<const SumKernel> every_sum();
// Null if no kernel has the name.
const SumKernel* find_sum(std::string_view name);

// Enqueues a kernel that somebody has loaded. Refuses memory that the GPU may not read, or not write.
Answer<void> launch(Gpu& gpu, GpuQueue* queue, const SumKernel& sum, const gpu::SumWork& work);

}  // namespace fccl::core::simulated
