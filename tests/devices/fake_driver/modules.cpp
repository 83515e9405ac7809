// The fake driver: modules, and kernels, which are loaded one by one or with their module, and do nothing.
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "devices/fake_driver/state.h"

namespace fccl::core::simulated {

namespace {

struct Kernel {
  Gpu* gpu;
  size_t number;  // in LoadedKernels
};

struct Module {
  Gpu* gpu;
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Kernel>> kernels;
};

std::atomic<size_t> kernels_made{0};

Module* module_of(CUmodule module) { return reinterpret_cast<Module*>(module); }
Kernel* kernel_of(CUfunction function) { return reinterpret_cast<Kernel*>(function); }

}  // namespace

}  // namespace fccl::core::simulated

using fccl::core::simulated::Gpu;
using fccl::core::simulated::GpuQueue;
using fccl::core::simulated::is_prohibited;
using fccl::core::simulated::Kernel;
using fccl::core::simulated::kernel_of;
using fccl::core::simulated::kernels_made;
using fccl::core::simulated::Module;
using fccl::core::simulated::module_of;
using fccl::core::simulated::on_current;
using fccl::core::simulated::on_stream;
using fccl::core::simulated::result_of;

extern "C" {

// Any image will do.
CUresult cuModuleLoadData(CUmodule* module, const void* /*image*/) {
  if (is_prohibited()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return on_current([&](Gpu& gpu) {
    if (!gpu.options().loads_lazily) {
      if (const CUresult result = result_of(gpu.load(++kernels_made)); result != CUDA_SUCCESS) return result;
    }
    *module = reinterpret_cast<CUmodule>(new Module{&gpu, {}, {}});
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleUnload(CUmodule module) {
  delete module_of(module);
  return CUDA_SUCCESS;
}

// Every module has a kernel of every name.
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  Module& found = *module_of(module);
  const std::scoped_lock lock(found.mutex);
  std::unique_ptr<Kernel>& kernel = found.kernels[name];
  if (kernel == nullptr) kernel = std::make_unique<Kernel>(found.gpu, ++kernels_made);
  *function = reinterpret_cast<CUfunction>(kernel.get());
  return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function) {
  return on_current([&](Gpu& gpu) { return result_of(gpu.load(kernel_of(function)->number)); });
}

CUresult cuLaunchKernel(CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned /*shared*/,
                        CUstream stream, void** /*parameters*/, void** /*more*/) {
  return on_stream(stream,
                   [&](Gpu& gpu, GpuQueue* queue) { return result_of(gpu.launch(queue, kernel_of(function)->number, [] {})); });
}

}  // extern "C"
