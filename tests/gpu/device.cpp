// Opens the GPU, finds the driver's functions, and turns its errors into text.
#include "device.h"

#include <sched.h>

#include <stdexcept>

#include "team.h"

namespace fccl::gpu {

namespace {

constexpr unsigned kDriverVersion = 13000;

template <class Function>
void find(const char* name, Function& function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status{};
  const cudaError_t result = cudaGetDriverEntryPointByVersion(name, &found, kDriverVersion, cudaEnableDefault, &status);
  if (result != cudaSuccess || status != cudaDriverEntryPointSuccess || found == nullptr) {
    throw Unsupported(std::string(name) + ", which this driver does not have in its form of CUDA 13.0");
  }
  function = reinterpret_cast<Function>(found);
}

Driver find_all() {
  Driver found{};
  find("cuGetErrorName", found.get_error_name);
  find("cuGetErrorString", found.get_error_string);
  find("cuDeviceGetAttribute", found.device_get_attribute);
  find("cuCtxGetCurrent", found.current_context);
  find("cuStreamWaitValue32", found.stream_wait_value);
  find("cuStreamWriteValue32", found.stream_write_value);
  find("cuStreamBatchMemOp", found.stream_batch);
  find("cuGraphAddBatchMemOpNode", found.graph_add_batch);
  find("cuMemCreate", found.mem_create);
  find("cuMemRelease", found.mem_release);
  find("cuMemAddressReserve", found.address_reserve);
  find("cuMemAddressFree", found.address_free);
  find("cuMemMap", found.mem_map);
  find("cuMemUnmap", found.mem_unmap);
  find("cuMemSetAccess", found.set_access);
  find("cuMemGetAllocationGranularity", found.granularity);
  find("cuMemExportToShareableHandle", found.export_handle);
  find("cuMemImportFromShareableHandle", found.import_handle);
  return found;
}

}  // namespace

std::string text_of(CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  driver().get_error_name(result, &name);
  driver().get_error_string(result, &text);
  if (name == nullptr || text == nullptr) return "CUresult " + std::to_string(static_cast<int>(result));
  return std::string(name) + ": " + text;
}

std::string text_of(cudaError_t result) { return std::string(cudaGetErrorName(result)) + ": " + cudaGetErrorString(result); }

void check(CUresult result, const char* called) {
  if (result == CUDA_SUCCESS) return;
  const std::string said = std::string(called) + " gave " + text_of(result);
  if (result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_NOT_PERMITTED) throw Unsupported(said);
  throw std::runtime_error(said);
}

void check(cudaError_t result, const char* called) {
  if (result == cudaSuccess) return;
  const std::string said = std::string(called) + " gave " + text_of(result);
  if (result == cudaErrorNotSupported || result == cudaErrorNotPermitted) throw Unsupported(said);
  throw std::runtime_error(said);
}

void open_gpu() {
  int count = 0;
  const cudaError_t looked = cudaGetDeviceCount(&count);
  if (looked == cudaErrorNoDevice || looked == cudaErrorInsufficientDriver || looked == cudaErrorStubLibrary) {
    throw Unsupported("a GPU (" + text_of(looked) + ")");
  }
  GPU_CHECK(looked);
  if (count == 0) throw Unsupported("a GPU (there are none)");
  GPU_CHECK(cudaSetDevice(0));
  GPU_CHECK(cudaFree(nullptr));
}

const Driver& driver() {
  static const Driver found = find_all();
  return found;
}

int attribute(CUdevice_attribute which) {
  int value = 0;
  GPU_CHECK(driver().device_get_attribute(&value, which, 0));
  return value;
}

Stream make_stream() {
  cudaStream_t made = nullptr;
  GPU_CHECK(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
  return Stream(made);
}

Event make_event() {
  cudaEvent_t made = nullptr;
  GPU_CHECK(cudaEventCreate(&made));
  return Event(made);
}

DeviceMemory::DeviceMemory(size_t bytes) : size_(bytes) {
  void* made = nullptr;
  GPU_CHECK(cudaMalloc(&made, bytes));
  memory_ = Owned<void*, cudaFree>(made);
}

double seconds_between(const Event& begin, const Event& end) {
  float milliseconds = 0;
  GPU_CHECK(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()));
  return static_cast<double>(milliseconds) * 1e-3;
}

bool is_done_by(const Stream& stream, const Deadline& deadline) {
  for (;;) {
    const cudaError_t state = cudaStreamQuery(stream.get());
    if (state == cudaSuccess) return true;
    if (state != cudaErrorNotReady) check(state, "cudaStreamQuery");
    if (deadline.has_passed()) return false;
    sched_yield();
  }
}

void drain(const Stream& stream, const Deadline& deadline, const char* what) {
  if (!is_done_by(stream, deadline)) {
    throw std::runtime_error(std::string("the stream was not done at the deadline: ") + what);
  }
}

}  // namespace fccl::gpu
