// Compares device memory with the pattern, on the device.
#include "verify.h"

#include "kernels.h"

namespace fccl::gpu {

unsigned long long wrong_words(const Stream& stream, const void* at, size_t bytes, uint32_t seed) {
  const DeviceMemory count(sizeof(unsigned long long));
  unsigned long long wrong = 0;
  GPU_CHECK(cudaMemsetAsync(count.get(), 0, count.size(), stream.get()));
  launch_compare(stream.get(), at, bytes, seed, static_cast<unsigned long long*>(count.get()));
  GPU_CHECK(cudaMemcpyAsync(&wrong, count.get(), sizeof(wrong), cudaMemcpyDeviceToHost, stream.get()));
  GPU_CHECK(cudaStreamSynchronize(stream.get()));
  return wrong;
}

}  // namespace fccl::gpu
