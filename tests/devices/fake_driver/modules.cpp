// The fake driver: modules, and kernels, which are loaded one by one or with their module. The kernels of sums add, and all
// others do nothing.
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "devices/fake_driver/state.h"
#include "devices/sums.h"

namespace fccl::core::simulated {

namespace {

struct Kernel {
  Gpu* gpu;
  size_t number;         // in LoadedKernels
  const SumKernel* sum;  // or null
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

using fccl::core::gpu::kThreadsPerBlock;
using fccl::core::gpu::SumWork;
using fccl::core::simulated::every_sum;
using fccl::core::simulated::find_sum;
using fccl::core::simulated::Gpu;
using fccl::core::simulated::GpuQueue;
using fccl::core::simulated::is_prohibited;
using fccl::core::simulated::Kernel;
using fccl::core::simulated::kernel_of;
using fccl::core::simulated::kernels_made;
using fccl::core::simulated::launch;
using fccl::core::simulated::Module;
using fccl::core::simulated::module_of;
using fccl::core::simulated::on_current;
using fccl::core::simulated::on_stream;
using fccl::core::simulated::result_of;
using fccl::core::simulated::SumKernel;

extern "C" {

// Any image will do.
CUresult cuModuleLoadData(CUmodule* module, const void* /*image*/) {
  if (is_prohibited()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return on_current([&](Gpu& gpu) {
    if (!gpu.options().loads_lazily) {
      if (const CUresult result = result_of(gpu.load(++kernels_made)); result != CUDA_SUCCESS) return result;
      for (const SumKernel& sum : every_sum())
        if (const CUresult result = result_of(gpu.load(sum.number())); result != CUDA_SUCCESS) return result;
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
  const SumKernel* const sum = find_sum(name);
  if (kernel == nullptr) kernel = std::make_unique<Kernel>(found.gpu, sum != nullptr ? sum->number() : ++kernels_made, sum);
  *function = reinterpret_cast<CUfunction>(kernel.get());
  return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function) {
  return on_current([&](Gpu& gpu) { return result_of(gpu.load(kernel_of(function)->number)); });
}

CUresult cuLaunchKernel(CUfunction function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                        unsigned /*shared*/, CUstream stream, void** parameters, void** /*more*/) {
  const Kernel& kernel = *kernel_of(function);
  return on_stream(stream, [&](Gpu& gpu, GpuQueue* queue) {
    if (kernel.sum == nullptr) return result_of(gpu.launch(queue, kernel.number, [] {}));
    if (blocks == 0 || threads != kThreadsPerBlock) return CUDA_ERROR_INVALID_VALUE;
    if (gpu.options().loads_lazily)
      if (const CUresult result = result_of(gpu.load(kernel.number)); result != CUDA_SUCCESS) return result;
    return result_of(launch(gpu, queue, *kernel.sum, *static_cast<const SumWork*>(parameters[0])));
  });
}

}  // extern "C"
