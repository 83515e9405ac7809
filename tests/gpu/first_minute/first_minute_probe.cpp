// The first probe of a new GPU: what the library takes for granted of a driver and no simulation can tell.
#include "first_minute/bare_driver.h"
#include "first_minute/cases.h"
#include "probe.h"

namespace fccl::gpu::bare {

void about(Rank& rank) {
  open();
  char name[128] = "";
  int version = 0;
  MUST(BARE(cuDeviceGetName)(name, sizeof(name), 0));
  MUST(BARE(cuDriverGetVersion)(&version));
  answer(rank, "GPU", text("%s, driver %d", name, version));
  const std::pair<const char*, CUdevice_attribute> asked[] = {
      {"64-bit memops", CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS},
      {"registered memory at its own address", CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM},
      {"read-only registration", CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED},
      {"access to pageable memory", CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS},
      {"descriptors of memory", CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED},
      {"dma_buf", CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED},
      {"copy engines", CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT},
      {"compute mode (3: one process)", CU_DEVICE_ATTRIBUTE_COMPUTE_MODE},
      {"flush of remote writes", CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES}};
  for (const auto& [what, which] : asked) answer(rank, what, text("%d", attribute(which)));
}

}  // namespace fccl::gpu::bare

int main(int argc, char** argv) {
  using namespace fccl::gpu::bare;
  // Each case opens the GPU itself: some in processes of their own alone.
  return fccl::gpu::run_probe({.number = 0, .look_for_gpu = open},
                              {{"about", 1, 20, about},
                               {"a process opens the GPU", 1, 40, openings},
                               {"copies between two places of host memory", 1, 15, host_to_host},
                               {"calls while a graph is recorded", 1, 15, captures},
                               {"streams that wait", 1, 25, connections},
                               {"streams that wait, 32 connections", 1, 25, connections_32},
                               {"calls without a context", 1, 10, no_context},
                               {"a copy beyond its memory", 1, 10, beyond},
                               {"a word in pageable memory", 1, 10, pageable_word},
                               {"mappings that processes share", 1, 10, shared_mappings},
                               {"set-up beside a stream that waits", 1, 20, set_up},
                               {"memory in pieces", 1, 10, pieces},
                               {"figures", 1, 20, figures},
                               {"streams of two processes", 1, 20, two_processes},
                               {"a process that ends while its stream waits", 1, 40, ends}},
                              argc, argv);
}
