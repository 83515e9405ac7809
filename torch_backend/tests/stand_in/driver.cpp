// Looks up the driver's functions in the process's libcuda.so.1, once, and keeps one context for each GPU.
#include "driver.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <vector>

namespace stand_in {
namespace {

template <class Function>
void find(Function& function, const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  TORCH_CHECK(library != nullptr, "no driver: ", dlerror());
  function = reinterpret_cast<Function>(dlsym(library, name));
  TORCH_CHECK(function != nullptr, "the driver has no ", name);
}

Driver load() {
  Driver driver{};
  find(driver.init, "cuInit");
  find(driver.device_get_count, "cuDeviceGetCount");
  find(driver.retain, "cuDevicePrimaryCtxRetain");
  find(driver.set_context, "cuCtxSetCurrent");
  find(driver.synchronize, "cuCtxSynchronize");
  find(driver.allocate, "cuMemAlloc_v2");
  find(driver.copy, "cuMemcpyAsync");
  find(driver.copy_rows, "cuMemcpy2DAsync_v2");
  find(driver.copy_at_once, "cuMemcpy");
  find(driver.create_stream, "cuStreamCreate");
  find(driver.query_stream, "cuStreamQuery");
  find(driver.synchronize_stream, "cuStreamSynchronize");
  find(driver.wait_event, "cuStreamWaitEvent");
  find(driver.is_capturing, "cuStreamIsCapturing");
  find(driver.begin_capture, "cuStreamBeginCapture_v2");
  find(driver.end_capture, "cuStreamEndCapture");
  find(driver.create_event, "cuEventCreate");
  find(driver.destroy_event, "cuEventDestroy_v2");
  find(driver.query_event, "cuEventQuery");
  find(driver.record_event, "cuEventRecord");
  find(driver.synchronize_event, "cuEventSynchronize");
  find(driver.launch_host_function, "cuLaunchHostFunc");
  check(driver.init(0), "cuInit");
  return driver;
}

const std::vector<CUcontext>& contexts() {
  static const std::vector<CUcontext> retained = [] {
    int count = 0;
    check(driver().device_get_count(&count), "cuDeviceGetCount");
    std::vector<CUcontext> contexts(count);
    for (int device = 0; device < count; ++device)
      check(driver().retain(&contexts[device], device), "cuDevicePrimaryCtxRetain");
    return contexts;
  }();
  return retained;
}

thread_local c10::DeviceIndex device_of_thread = -1;

}  // namespace

const Driver& driver() {
  static const Driver loaded = load();
  return loaded;
}

void check(CUresult result, const char* call) { TORCH_CHECK(result == CUDA_SUCCESS, call, " said ", static_cast<int>(result)); }

int device_count() { return static_cast<int>(contexts().size()); }

c10::DeviceIndex current_device() {
  if (device_of_thread < 0) use_device(0);
  return device_of_thread;
}

void use_device(c10::DeviceIndex device) {
  TORCH_CHECK(device >= 0 && device < device_count(), "there is no device ", static_cast<int>(device));
  check(driver().set_context(contexts()[device]), "cuCtxSetCurrent");
  device_of_thread = device;
}

}  // namespace stand_in
