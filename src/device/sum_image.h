// SumImage: the kernels of kernels/gpu/sum.cu in the form that CUDA's driver loads.
#pragma once

#include <cstddef>
#include <span>

namespace fccl::core {

// Empty if FCCL was built without nvcc. It lies in the library.
std::span<const std::byte> sum_image();

}  // namespace fccl::core
