// Reduction: a sum that a kernel of the GPU computes, and which kernel that is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/dtype.h"
#include "kernels/gpu/sum.h"

namespace fccl::core {

// Adds equal numbers of elements, element by element, with the bits of kernels/reduce.h. All addresses are the GPU's, and may
// be odd. `out` may be one of the sources, exactly, unless the result is wider.
struct Reduction {
  fcclDataType_t dtype = fcclFloat32;  // of the sources
  ReduceOp op = ReduceOp::sum;
  bool widens = false;  // the result is float32, of narrower sources
  std::byte* out = nullptr;
  std::span<const std::byte* const> sources;  // in the order in which they are added
  // Of a pre-multiplied sum: where each source's factor will be once the kernel runs, an element of the sources' type.
  std::span<const std::byte* const> factors;
  size_t count = 0;  // elements of a source
  int blocks = 8;    // the most blocks of threads; a processor of the GPU runs two at the same time
};

inline constexpr size_t kSumKernels = 105;

// Returns the number of the kernel for sums of this kind; nothing if no kernel does it.
std::optional<size_t> sum_kernel(fcclDataType_t dtype, ReduceOp op, bool widens, size_t sources);
// Likewise, also if the reduction names no memory that the kernel needs.
std::optional<size_t> sum_kernel(const Reduction& reduction);
// Return the name of a kernel in kernels/gpu/sum.cu, and of how many sources it is.
const char* name_of_sum_kernel(size_t kernel);
size_t sources_of_sum_kernel(size_t kernel);

// Return what the kernel of a reduction gets, and the number of its blocks: as many as have work, if the reduction allows.
gpu::SumWork work_of(const Reduction& reduction);
unsigned blocks_of(const Reduction& reduction);

}  // namespace fccl::core
