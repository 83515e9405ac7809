// The fake driver: memory, and copies that wait.
#include <cstring>
#include <vector>

#include "devices/fake_driver/state.h"

using fccl::core::simulated::bytes_at;
using fccl::core::simulated::fake_driver;
using fccl::core::simulated::find_region;
using fccl::core::simulated::give;
using fccl::core::simulated::Gpu;
using fccl::core::simulated::GpuMemory;
using fccl::core::simulated::GpuQueue;
using fccl::core::simulated::is_prohibited;
using fccl::core::simulated::on_current;
using fccl::core::simulated::on_stream;
using fccl::core::simulated::real;
using fccl::core::simulated::Region;
using fccl::core::simulated::result_of;
using fccl::core::simulated::store;

namespace {

CUresult allocate(Region::Kind kind, size_t bytes, std::byte** made) {
  if (is_prohibited()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return on_current([&](Gpu& gpu) {
    const CUresult result = give(gpu.memory().allocate(kind, bytes), made);
    return result == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_OUT_OF_MEMORY : result;
  });
}

// Memory of a GPU, or the host's own.
std::byte* reached(CUdeviceptr address) {
  std::byte* const found = real(bytes_at(address));
  return found != nullptr ? found : bytes_at(address);
}

// After what is on the default stream, and done when it returns.
CUresult copy_now(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  if (is_prohibited()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return on_stream(nullptr, [&](Gpu& gpu, GpuQueue* queue) {
    if (const CUresult result = result_of(gpu.synchronize(queue)); result != CUDA_SUCCESS) return result;
    std::memmove(reached(to), reached(from), bytes);
    return CUDA_SUCCESS;
  });
}

CUmemorytype type_of(const Region& region) {
  switch (region.kind) {
    case Region::Kind::device:
    case Region::Kind::piece:
    case Region::Kind::managed:
      return CU_MEMORYTYPE_DEVICE;
    case Region::Kind::pinned:
    case Region::Kind::registered:
    case Region::Kind::device_address:
      return CU_MEMORYTYPE_HOST;
    default:
      return static_cast<CUmemorytype>(0);
  }
}

// False for an attribute that the fake does not know.
bool put_attribute(CUpointer_attribute which, CUdeviceptr address, void* out) {
  Region region;
  const bool found = find_region(bytes_at(address), region) && type_of(region) != 0;
  switch (which) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(out) = found ? type_of(region) : 0;
      return true;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned*>(out) = found && region.kind == Region::Kind::managed ? 1 : 0;
      return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(out) = found ? region.gpu->options().ordinal : -2;
      return true;
    default:
      return false;
  }
}

}  // namespace

extern "C" {

CUresult cuMemAlloc_v2(CUdeviceptr* memory, size_t bytes) {
  return allocate(Region::Kind::device, bytes, reinterpret_cast<std::byte**>(memory));
}

CUresult cuMemAllocManaged(CUdeviceptr* memory, size_t bytes, unsigned /*flags*/) {
  return allocate(Region::Kind::managed, bytes, reinterpret_cast<std::byte**>(memory));
}

CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned /*flags*/) {
  return allocate(Region::Kind::pinned, bytes, reinterpret_cast<std::byte**>(memory));
}

CUresult cuMemAllocHost_v2(void** memory, size_t bytes) { return cuMemHostAlloc(memory, bytes, 0); }

CUresult cuMemFree_v2(CUdeviceptr memory) {
  if (is_prohibited()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (memory == 0) return CUDA_SUCCESS;
  return on_current([&](Gpu& gpu) { return result_of(gpu.memory().free(bytes_at(memory))); });
}

CUresult cuMemFreeHost(void* memory) { return cuMemFree_v2(reinterpret_cast<CUdeviceptr>(memory)); }

CUresult cuMemGetInfo_v2(size_t* free, size_t* all) {
  *free = *all = size_t{1} << 33;
  return fake_driver() == nullptr ? CUDA_ERROR_NOT_INITIALIZED : CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void* memory, size_t bytes, unsigned flags) {
  if (is_prohibited()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const auto how = (flags & CU_MEMHOSTREGISTER_READ_ONLY) != 0 ? GpuMemory::Pins::read_only : GpuMemory::Pins::read_write;
  return on_current([&](Gpu& gpu) { return result_of(gpu.memory().pin({static_cast<std::byte*>(memory), bytes}, how)); });
}

CUresult cuMemHostUnregister(void* memory) {
  if (is_prohibited()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return on_current([&](Gpu& gpu) { return result_of(gpu.memory().unpin(static_cast<std::byte*>(memory))); });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* memory, unsigned flags) {
  Region region;
  if (flags != 0 || !find_region(memory, region)) return CUDA_ERROR_INVALID_VALUE;
  if (region.kind != Region::Kind::registered && region.kind != Region::Kind::pinned) return CUDA_ERROR_INVALID_VALUE;
  std::byte* const first = region.kind == Region::Kind::registered ? region.twin : region.begin;
  *address = reinterpret_cast<CUdeviceptr>(first + (static_cast<std::byte*>(memory) - region.begin));
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* out, CUpointer_attribute which, CUdeviceptr address) {
  if (fake_driver() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  Region region;
  if (!find_region(bytes_at(address), region) || type_of(region) == 0) return CUDA_ERROR_INVALID_VALUE;
  return put_attribute(which, address, out) ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* which, void** out, CUdeviceptr address) {
  if (fake_driver() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  for (unsigned i = 0; i < count; ++i) {
    if (!put_attribute(which[i], address, out[i])) return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) { return copy_now(to, from, bytes); }

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return copy_now(to, reinterpret_cast<CUdeviceptr>(from), bytes);
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return copy_now(reinterpret_cast<CUdeviceptr>(to), from, bytes);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) { return copy_now(to, from, bytes); }

CUresult cuMemsetD8Async(CUdeviceptr memory, unsigned char value, size_t bytes, CUstream stream) {
  if (real(bytes_at(memory)) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return on_stream(stream, [&](Gpu& gpu, GpuQueue* queue) {
    return result_of(
        gpu.launch(queue, [=] { store(bytes_at(memory), std::vector<std::byte>(bytes, static_cast<std::byte>(value))); }));
  });
}

CUresult cuMemsetD8_v2(CUdeviceptr memory, unsigned char value, size_t bytes) {
  const CUresult result = cuMemsetD8Async(memory, value, bytes, nullptr);
  if (result != CUDA_SUCCESS) return result;
  return on_stream(nullptr, [](Gpu& gpu, GpuQueue* queue) { return result_of(gpu.synchronize(queue)); });
}

}  // extern "C"
