// The conformance suite over CUDA's driver: the fake one in ctest, the real one in ./dev gpu.
#include <cstdlib>
#include <string_view>

#include "devices/conformance_sums.h"
#include "devices/cuda_user.h"

namespace fccl::core {

namespace {

// Fails the test if the environment promises a fake driver that is absent: that is not a reason to skip.
Result<std::unique_ptr<GpuUser>> open_gpu() {
  auto opened = open_cuda_user(0);
  if (!opened && std::getenv("FAKE_CUDA_GPUS") != nullptr) ADD_FAILURE() << opened.error().message;
  return opened;
}

bool is_real() { return std::getenv("FAKE_CUDA_GPUS") == nullptr; }

bool queues_are_apart() {
  const char* const connections = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  return connections == nullptr || std::string_view(connections) != "1";
}

INSTANTIATE_TEST_SUITE_P(Cuda, DeviceConformance, testing::Values(GpuFactory{"gpu_0", open_gpu, queues_are_apart(), is_real()}),
                         name_of_factory);
INSTANTIATE_TEST_SUITE_P(Cuda, DeviceSums, testing::Values(GpuFactory{"gpu_0", open_gpu, queues_are_apart(), is_real()}),
                         name_of_factory);

}  // namespace

}  // namespace fccl::core
