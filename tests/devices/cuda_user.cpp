// CudaUser: each function is one or two of the driver's, found in the library that open_device has loaded.
#include "devices/cuda_user.h"

#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "device/cuda_driver.h"

namespace fccl::core {

namespace {

template <class Function>
Function* function(const char* name) {
  auto* const found = reinterpret_cast<Function*>(function_of_loaded_driver(name));
  if (found != nullptr) return found;
  std::fprintf(stderr, "the driver has no %s\n", name);
  std::abort();
}

void check(CUresult result, const char* called) {
  if (result == CUDA_SUCCESS) return;
  const char* text = nullptr;
  function<decltype(cuGetErrorName)>("cuGetErrorName")(result, &text);
  std::fprintf(stderr, "%s said %s\n", called, text == nullptr ? "an unknown error" : text);
  std::abort();
}

CUdeviceptr address_of(const std::byte* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

class CudaUser : public GpuUser {
 public:
  explicit CudaUser(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  Device& device() override { return *device_; }

  std::byte* allocate(MemoryPlace place, size_t bytes) override {
    const Device::Use use(*device_);
    CUdeviceptr made = 0;
    void* pinned = nullptr;
    switch (place) {
      case MemoryPlace::managed:
        check(function<decltype(cuMemAllocManaged)>("cuMemAllocManaged")(&made, bytes, CU_MEM_ATTACH_GLOBAL),
              "cuMemAllocManaged");
        return reinterpret_cast<std::byte*>(made);
      case MemoryPlace::pinned_host:
        check(function<decltype(cuMemHostAlloc)>("cuMemHostAlloc")(&pinned, bytes, CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc");
        return static_cast<std::byte*>(pinned);
      default:
        check(function<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2")(&made, bytes), "cuMemAlloc");
        return reinterpret_cast<std::byte*>(made);
    }
  }
  void free(std::byte* memory, MemoryPlace place) override {
    const Device::Use use(*device_);
    if (place == MemoryPlace::pinned_host) {
      check(function<decltype(cuMemFreeHost)>("cuMemFreeHost")(memory), "cuMemFreeHost");
    } else {
      check(function<decltype(cuMemFree_v2)>("cuMemFree_v2")(address_of(memory)), "cuMemFree");
    }
  }
  void write(std::byte* to, std::span<const std::byte> from) override {
    const Device::Use use(*device_);
    check(function<decltype(cuMemcpyHtoD_v2)>("cuMemcpyHtoD_v2")(address_of(to), from.data(), from.size()), "cuMemcpyHtoD");
    // A small copy from pageable memory may return before it is done.
    check(function<decltype(cuStreamSynchronize)>("cuStreamSynchronize")(nullptr), "cuStreamSynchronize");
  }
  void read(const std::byte* from, std::span<std::byte> to) override {
    const Device::Use use(*device_);
    check(function<decltype(cuMemcpyDtoH_v2)>("cuMemcpyDtoH_v2")(to.data(), address_of(from), to.size()), "cuMemcpyDtoH");
  }
  Queue make_stream() override {
    const Device::Use use(*device_);
    CUstream made = nullptr;
    check(function<decltype(cuStreamCreate)>("cuStreamCreate")(&made, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    return {made};
  }
  void drop_stream(Queue stream) override {
    const Device::Use use(*device_);
    check(function<decltype(cuStreamDestroy_v2)>("cuStreamDestroy_v2")(static_cast<CUstream>(stream.native)),
          "cuStreamDestroy");
  }
  void begin_capture(Queue stream) override {
    const Device::Use use(*device_);
    check(function<decltype(cuStreamBeginCapture_v2)>("cuStreamBeginCapture_v2")(static_cast<CUstream>(stream.native),
                                                                                 CU_STREAM_CAPTURE_MODE_RELAXED),
          "cuStreamBeginCapture");
  }
  void end_capture(Queue stream) override {
    const Device::Use use(*device_);
    CUgraph graph = nullptr;
    check(function<decltype(cuStreamEndCapture)>("cuStreamEndCapture")(static_cast<CUstream>(stream.native), &graph),
          "cuStreamEndCapture");
    if (graph != nullptr) check(function<decltype(cuGraphDestroy)>("cuGraphDestroy")(graph), "cuGraphDestroy");
  }

 private:
  std::shared_ptr<Device> device_;
};

}  // namespace

Result<std::unique_ptr<GpuUser>> open_cuda_user(int ordinal) {
  auto device = open_device(ordinal);
  if (!device) return fail(std::move(device).error());
  return std::unique_ptr<GpuUser>(std::make_unique<CudaUser>(*std::move(device)));
}

}  // namespace fccl::core
