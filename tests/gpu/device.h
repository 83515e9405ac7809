// The GPU as the probes use it: errors as text, the driver's functions, and one owner for each kind of handle.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <bit>
#include <cstddef>
#include <exception>
#include <string>
#include <utility>

#include "deadline.h"

namespace fccl::gpu {

// "CUDA_ERROR_NOT_SUPPORTED: operation not supported", and the same of the runtime.
std::string text_of(CUresult result);
std::string text_of(cudaError_t result);

// Throw std::runtime_error with what was called and what came of it, or Unsupported if that is that it may not be.
void check(CUresult result, const char* called);
void check(cudaError_t result, const char* called);
#define GPU_CHECK(call) ::fccl::gpu::check((call), #call)

// Makes GPU 0 current in this process. Throws Unsupported without a GPU, or with a driver that is too old.
void open_gpu();

// The driver's functions that the runtime has no equal of, found at run time: a program must start where there is no driver.
struct Driver {
  decltype(&cuGetErrorName) get_error_name;
  decltype(&cuGetErrorString) get_error_string;
  decltype(&cuDeviceGetAttribute) device_get_attribute;
  decltype(&cuCtxGetCurrent) current_context;
  decltype(&cuStreamWaitValue32) stream_wait_value;
  decltype(&cuStreamWriteValue32) stream_write_value;
  decltype(&cuStreamBatchMemOp) stream_batch;
  decltype(&cuGraphAddBatchMemOpNode) graph_add_batch;
  decltype(&cuMemCreate) mem_create;
  decltype(&cuMemRelease) mem_release;
  decltype(&cuMemAddressReserve) address_reserve;
  decltype(&cuMemAddressFree) address_free;
  decltype(&cuMemMap) mem_map;
  decltype(&cuMemUnmap) mem_unmap;
  decltype(&cuMemSetAccess) set_access;
  decltype(&cuMemGetAllocationGranularity) granularity;
  decltype(&cuMemExportToShareableHandle) export_handle;
  decltype(&cuMemImportFromShareableHandle) import_handle;
};

// The driver's functions in this process, after open_gpu. Throws Unsupported for a function that the driver lacks.
const Driver& driver();

int attribute(CUdevice_attribute which);

// The driver's functions take and give numbers, the runtime's pointers, for the same addresses.
inline CUdeviceptr address_of(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }
inline void* pointer_to(CUdeviceptr address) { return std::bit_cast<void*>(address); }

// Owns one handle, which `destroy` gives back. Moved, not copied. A rank that is leaving by an exception ends, and the driver
// takes back all it has; to give a handle back before could mean to wait for work that never ends.
template <class Handle, cudaError_t (*destroy)(Handle)>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ != Handle{} && std::uncaught_exceptions() == 0) destroy(handle_);
  }
  Handle get() const { return handle_; }

 private:
  Handle handle_{};
};

using Stream = Owned<cudaStream_t, cudaStreamDestroy>;
using Event = Owned<cudaEvent_t, cudaEventDestroy>;
using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;
using GraphRun = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;

// Streams do not wait for the default stream.
Stream make_stream();
Event make_event();

// Device memory of cudaMalloc.
class DeviceMemory {
 public:
  explicit DeviceMemory(size_t bytes);
  void* get() const { return memory_.get(); }
  std::byte* at(size_t offset) const { return static_cast<std::byte*>(memory_.get()) + offset; }
  size_t size() const { return size_; }

 private:
  Owned<void*, cudaFree> memory_;
  size_t size_;
};

// Between two recorded events, the second of which has happened.
double seconds_between(const Event& begin, const Event& end);

// Returns when all of the stream's work is done; throws when the deadline passes, naming `what`.
void drain(const Stream& stream, const Deadline& deadline, const char* what);
// The same, with false in place of the exception.
bool is_done_by(const Stream& stream, const Deadline& deadline);

}  // namespace fccl::gpu
