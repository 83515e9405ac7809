// Opens libcuda.so.1, never from the current directory, and finds its functions.
#include "device/cuda_driver.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "os/per_process.h"
#include "os/signal_handlers.h"

namespace fccl::core {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

// Folders of drivers that the loader does not search.
constexpr const char* kFolders[] = {"/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/usr/lib64/nvidia",
                                    "/run/opengl-driver/lib", "/usr/lib64"};

struct OpenDriver {
  std::mutex mutex;
  std::optional<CudaDriver> driver;
};
constinit PerProcess<OpenDriver> open_driver;

void library_anchor() {}

// Returns the folders that the loader searches for this library's dependencies, in order. The folders that ldconfig knows come
// after these.
std::vector<std::string> folders_of_loader() {
  Dl_info found{};
  void* object = nullptr;
  Dl_serinfo size{};
  if (::dladdr1(reinterpret_cast<const void*>(&library_anchor), &found, &object, RTLD_DL_LINKMAP) == 0 || object == nullptr ||
      ::dlinfo(object, RTLD_DI_SERINFOSIZE, &size) != 0)
    return {""};  // unknown: treat it like the current directory
  const auto memory = std::make_unique<std::max_align_t[]>(size.dls_size / sizeof(std::max_align_t) + 1);
  auto* const list = reinterpret_cast<Dl_serinfo*>(memory.get());
  std::memcpy(list, &size, sizeof(size));
  if (::dlinfo(object, RTLD_DI_SERINFOSIZE, list) != 0 || ::dlinfo(object, RTLD_DI_SERINFO, list) != 0) return {""};
  const Dl_serpath* const first = &list->dls_serpath[0];
  std::vector<std::string> folders;
  std::transform(first, first + list->dls_cnt, std::back_inserter(folders), [](const auto& path) { return path.dls_name; });
  return folders;
}

// Reads /proc instead of asking the loader: another thread may hold the loader's lock while this process forks, and the child
// would then wait for the lock forever.
bool is_mapped() {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line))
    if (line.find(kLibrary) != std::string::npos || line.find("/libcuda.so") != std::string::npos) return true;
  return false;
}

bool is_absolute(const std::string& folder) { return folder.starts_with('/'); }

// Opens the library by name only if the loader searches nothing but absolute folders, since LD_LIBRARY_PATH may have an empty
// or relative element.
void* open_library() {
  if (void* loaded = ::dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD)) return loaded;
  std::vector<std::string> folders = folders_of_loader();
  if (std::ranges::all_of(folders, is_absolute)) {
    if (void* loaded = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL)) return loaded;
  }
  folders.insert(folders.end(), std::begin(kFolders), std::end(kFolders));
  for (const std::string& folder : folders) {
    const std::string path = folder + "/" + kLibrary;
    if (!is_absolute(folder) || ::access(path.c_str(), F_OK) != 0) continue;
    if (void* loaded = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return loaded;
  }
  return nullptr;
}

// Looks up a function, and notes the first missing name in `missing`.
template <class Function>
void find(void* library, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr && missing.empty()) missing = name;
}

// Those of virtual memory.
template <class Find>
void find_memory_functions(CudaDriver& found, Find find) {
  find("cuMemGetAllocationGranularity", found.memory_get_granularity);
  find("cuMemCreate", found.memory_create);
  find("cuMemRelease", found.memory_release);
  find("cuMemAddressReserve", found.memory_reserve);
  find("cuMemAddressFree", found.memory_free_address);
  find("cuMemMap", found.memory_map);
  find("cuMemUnmap", found.memory_unmap);
  find("cuMemSetAccess", found.memory_set_access);
  find("cuMemExportToShareableHandle", found.memory_export);
  find("cuMemImportFromShareableHandle", found.memory_import);
}

Result<CudaDriver> find_functions(void* library) {
  CudaDriver found{};
  std::string missing;
  const auto find = [&](const char* name, auto& function) { fccl::core::find(library, name, function, missing); };
  find("cuInit", found.init);
  find("cuDriverGetVersion", found.driver_get_version);
  find("cuGetErrorName", found.get_error_name);
  find("cuGetErrorString", found.get_error_string);
  find("cuDeviceGetCount", found.device_get_count);
  find("cuDeviceGet", found.device_get);
  find("cuDeviceGetName", found.device_get_name);
  find("cuDeviceGetAttribute", found.device_get_attribute);
  find("cuDeviceGetPCIBusId", found.device_get_bus_id);
  find("cuDeviceGetUuid_v2", found.device_get_uuid);
  find("cuDeviceGetByPCIBusId", found.device_get_by_bus_id);
  find("cuDeviceCanAccessPeer", found.device_can_access_peer);
  find("cuDevicePrimaryCtxRetain", found.primary_context_retain);
  find("cuCtxPushCurrent_v2", found.context_push);
  find("cuCtxPopCurrent_v2", found.context_pop);
  find("cuMemHostRegister_v2", found.host_register);
  find("cuMemHostUnregister", found.host_unregister);
  find("cuMemHostGetDevicePointer_v2", found.host_get_device_pointer);
  find("cuPointerGetAttributes", found.pointer_get_attributes);
  find_memory_functions(found, find);
  find("cuStreamCreate", found.stream_create);
  find("cuStreamDestroy_v2", found.stream_destroy);
  find("cuStreamGetCtx", found.stream_get_context);
  find("cuStreamIsCapturing", found.stream_is_capturing);
  find("cuThreadExchangeStreamCaptureMode", found.exchange_capture_mode);
  find("cuStreamQuery", found.stream_query);
  find("cuStreamWaitEvent", found.stream_wait_event);
  find("cuEventCreate", found.event_create);
  find("cuEventDestroy_v2", found.event_destroy);
  find("cuEventRecord", found.event_record);
  find("cuMemcpyAsync", found.copy);
  find("cuMemcpy2DAsync_v2", found.copy_rows);
  find("cuModuleLoadData", found.module_load_data);
  find("cuModuleGetFunction", found.module_get_function);
  find("cuLaunchKernel", found.launch_kernel);
  if (!missing.empty())
    return fail(fcclSystemError,
                fmt::format("cannot use a GPU: no driver that FCCL can use ({} has no {}); install one of CUDA 11.7 or later",
                            kLibrary, missing));
  find("cuStreamBatchMemOp_v2", found.stream_batch);
  find("cuFuncLoad", found.function_load);
  return found;
}

Result<CudaDriver> load() {
  const SignalHandlers kept;
  void* const library = open_library();
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return fail(fcclSystemError, fmt::format("cannot use a GPU: no driver ({}); install NVIDIA's driver, or use CPU memory",
                                             why != nullptr ? why : fmt::format("there is no {}", kLibrary)));
  }
  Result<CudaDriver> found = find_functions(library);
  if (!found) return found;
  const CUresult result = found->init(0);
  if (result == CUDA_SUCCESS) return found;
  if (result == CUDA_ERROR_NO_DEVICE)
    return fail(fcclSystemError, fmt::format("cannot use a GPU: no GPU (cuInit said {}); nvidia-smi lists what there is, and "
                                             "CUDA_VISIBLE_DEVICES may hide it",
                                             found->text_of(result)));
  if (result == CUDA_ERROR_NOT_INITIALIZED)
    return fail(fcclSystemError,
                fmt::format("cannot use a GPU: cuInit said {}, as it does in a process that was forked from one which had used "
                            "CUDA; start the process anew (in Python: multiprocessing by spawn)",
                            found->text_of(result)));
  return fail(fcclSystemError,
              fmt::format("cannot use a GPU: cuInit said {}; see whether nvidia-smi works", found->text_of(result)));
}

}  // namespace

std::string CudaDriver::text_of(CUresult result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  get_error_name(result, &name);
  get_error_string(result, &text);
  if (name == nullptr || text == nullptr) return fmt::format("CUresult {}", static_cast<int>(result));
  return fmt::format("{} ({})", name, text);
}

Result<const CudaDriver*> cuda_driver() {
  OpenDriver& open = open_driver.get();
  const std::scoped_lock lock(open.mutex);
  if (!open.driver) {
    FCCL_TRY_ASSIGN(CudaDriver loaded, load());
    open.driver = loaded;
  }
  return &*open.driver;
}

void* function_of_loaded_driver(const char* name) {
  if (!is_mapped()) return nullptr;
  void* const library = ::dlopen(kLibrary, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* const found = ::dlsym(library, name);
  ::dlclose(library);
  return found;
}

}  // namespace fccl::core
