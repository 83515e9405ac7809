// Has no kernels, since FCCL was built without nvcc.
#include "device/sum_image.h"

namespace fccl::core {

std::span<const std::byte> sum_image() { return {}; }

}  // namespace fccl::core
