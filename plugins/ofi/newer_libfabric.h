// Constants that libfabric defines after 1.17, whose headers are enough to compile this plug-in; they are used only if
// fi_version() is new enough.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

namespace fccl::core::ofi {

// An option of an endpoint, and the first version that knows it.
struct NewerOption {
  int name;
  uint32_t since;
};

// include/rdma/fi_endpoint.h, FI_OPT_CUDA_API_PERMITTED (bool).
inline constexpr NewerOption kCudaApiPermitted{10, FI_VERSION(1, 18)};
// include/rdma/fi_endpoint.h, FI_OPT_SHARED_MEMORY_PERMITTED (bool).
inline constexpr NewerOption kSharedMemoryPermitted{11, FI_VERSION(1, 21)};

}  // namespace fccl::core::ofi
