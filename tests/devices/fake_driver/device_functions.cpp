// The fake driver: what it says of itself, of its GPUs and of contexts. Each GPU has one context, the primary one.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "devices/fake_driver/state.h"

using fccl::core::simulated::fake_driver;
using fccl::core::simulated::Gpu;
using fccl::core::simulated::gpu_at;
using fccl::core::simulated::GpuContext;

namespace {

CUcontext context_of(Gpu* gpu) { return reinterpret_cast<CUcontext>(gpu); }
Gpu* gpu_of(CUcontext context) { return reinterpret_cast<Gpu*>(context); }

CUresult put_text(const std::string& text, char* out, int length) {
  if (length <= 0) return CUDA_ERROR_INVALID_VALUE;
  const size_t fits = std::min(text.size(), static_cast<size_t>(length) - 1);
  std::copy_n(text.data(), fits, out);
  out[fits] = '\0';
  return CUDA_SUCCESS;
}

std::string bus_id_of(CUdevice device) { return fmt::format("0000:{:02x}:00.0", 0x10 + device); }

struct ErrorText {
  CUresult result;
  const char* name;
  const char* text;
};
constexpr ErrorText kTexts[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
};

const ErrorText* text_of(CUresult result) {
  const auto* const found = std::ranges::find(kTexts, result, &ErrorText::result);
  return found == std::end(kTexts) ? nullptr : found;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned flags) { return flags == 0 ? fccl::core::simulated::initialise() : CUDA_ERROR_INVALID_VALUE; }

CUresult cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult result, const char** name) {
  const ErrorText* const found = text_of(result);
  *name = found == nullptr ? nullptr : found->name;
  return found == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult result, const char** text) {
  const ErrorText* const found = text_of(result);
  *text = found == nullptr ? nullptr : found->text;
  return found == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int /*version*/, cuuint64_t /*flags*/,
                             CUdriverProcAddressQueryResult* status) {
  Dl_info self{};
  ::dladdr(reinterpret_cast<void*>(&cuInit), &self);
  void* const library = ::dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  *function = nullptr;
  for (const char* const suffix : {"_v2", ""}) {
    if (*function == nullptr && library != nullptr) *function = ::dlsym(library, fmt::format("{}{}", symbol, suffix).c_str());
  }
  if (status != nullptr) *status = *function == nullptr ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : CU_GET_PROC_ADDRESS_SUCCESS;
  return *function == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  if (fake_driver() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  *count = static_cast<int>(fake_driver()->gpus.size());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (fake_driver() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (gpu_at(ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  if (gpu_at(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  return put_text("Simulated GPU", name, length);
}

CUresult cuDeviceGetPCIBusId(char* bus_id, int length, CUdevice device) {
  if (gpu_at(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  return put_text(bus_id_of(device), bus_id, length);
}

// Another GPU in each process, as each process has its own.
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  if (gpu_at(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *uuid = {};
  const std::string text = fmt::format("fake{:08x}{:02x}", static_cast<unsigned>(::getpid()), device);
  std::copy_n(text.data(), std::min(text.size(), sizeof(uuid->bytes)), uuid->bytes);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice device) {
  const Gpu* const gpu = gpu_at(device);
  if (gpu == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  switch (static_cast<int>(which)) {
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
      *value = static_cast<int>(std::min<size_t>(gpu->options().most_pitch, INT32_MAX));
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
      *value = 1;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED:
      *value = gpu->options().pins_read_only ? 1 : 0;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
      *value = gpu->options().lends ? 1 : 0;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
      *value = gpu->options().waits_for_words ? 1 : 0;
      return CUDA_SUCCESS;
    default:
      *value = 0;
      return CUDA_SUCCESS;
  }
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* bus_id) {
  if (fake_driver() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  for (CUdevice each = 0; gpu_at(each) != nullptr; ++each) {
    if (bus_id_of(each) != bus_id) continue;
    *device = each;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  const Gpu* const gpu = gpu_at(device);
  if (gpu == nullptr || gpu_at(peer) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *can = device != peer && (gpu->options().cannot_reach >> peer & 1) == 0 ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  if (gpu_at(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = size_t{1} << 33;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (gpu_at(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *context = context_of(gpu_at(device));
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return gpu_at(device) == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  if (fake_driver() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  GpuContext::push_current(gpu_of(context));
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  if (fake_driver() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  Gpu* const popped = GpuContext::pop_current();
  if (popped == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = context_of(popped);
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  if (fake_driver() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  GpuContext::pop_current();
  if (context != nullptr) GpuContext::push_current(gpu_of(context));
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  if (fake_driver() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  *context = context_of(GpuContext::current());
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  if (fake_driver() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (GpuContext::current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = GpuContext::current()->options().ordinal;
  return CUDA_SUCCESS;
}

}  // extern "C"
