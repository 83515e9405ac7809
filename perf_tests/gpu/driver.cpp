// Loads libcuda.so.1 and finds its functions, by their versioned names.
#include "gpu/driver.h"

#include <dlfcn.h>

namespace fccl::perf {
namespace {

// Places that drivers lie in, including some that the loader does not search.
constexpr const char* kLibraries[] = {"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1",
                                      "/usr/lib64/nvidia/libcuda.so.1"};

Error without(const std::string& what) {
  return {fcclUnhandledCudaError, "--device cuda: " + what + "; leave --device out to measure CPU memory"};
}

template <class Function>
void find(void* library, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (!function && missing.empty()) missing = name;
}

Result<GpuDriver> load() {
  void* library = nullptr;
  std::string why;
  for (const char* const name : kLibraries) {
    if (library) break;
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library && why.empty()) why = dlerror();
  }
  if (!library) return without("no driver: " + why);
  GpuDriver found{};
  std::string missing;
  find(library, "cuInit", found.init, missing);
  find(library, "cuGetErrorName", found.error_name, missing);
  find(library, "cuGetErrorString", found.error_text, missing);
  find(library, "cuDeviceGetCount", found.count, missing);
  find(library, "cuDeviceGet", found.get, missing);
  find(library, "cuDeviceGetName", found.name, missing);
  find(library, "cuDeviceGetPCIBusId", found.bus_id, missing);
  find(library, "cuDeviceTotalMem_v2", found.total_bytes, missing);
  find(library, "cuDevicePrimaryCtxRetain", found.retain_context, missing);
  find(library, "cuCtxSetCurrent", found.set_current, missing);
  find(library, "cuMemAlloc_v2", found.allocate, missing);
  find(library, "cuMemFree_v2", found.free, missing);
  find(library, "cuMemcpyHtoD_v2", found.copy_in, missing);
  find(library, "cuMemcpyDtoH_v2", found.copy_out, missing);
  find(library, "cuStreamCreate", found.make_stream, missing);
  find(library, "cuStreamDestroy_v2", found.drop_stream, missing);
  find(library, "cuStreamQuery", found.query_stream, missing);
  find(library, "cuStreamSynchronize", found.finish_stream, missing);
  if (!missing.empty()) return without("the driver is too old, it has no " + missing);
  int gpus = 0;
  auto begun = found.check(found.init(0), "cuInit");
  if (begun) begun = found.check(found.count(&gpus), "cuDeviceGetCount");
  if (!begun) return without("no GPU: " + begun.error().message);
  if (gpus == 0) return without("no GPU: the driver lists none");
  return found;
}

}  // namespace

Result<void> GpuDriver::check(GpuResult result, const std::string& called) const {
  if (result == 0) return {};
  const char* name = nullptr;
  const char* text = nullptr;
  static_cast<void>(error_name(result, &name));
  static_cast<void>(error_text(result, &text));
  return Error{fcclUnhandledCudaError, called + " gave " + (name ? name : std::to_string(result)) + " (" +
                                           (text ? text : "which the driver has no text for") + ")"};
}

Result<const GpuDriver*> gpu_driver() {
  static const Result<GpuDriver> loaded = load();
  if (!loaded) return loaded.error();
  return &*loaded;
}

}  // namespace fccl::perf
