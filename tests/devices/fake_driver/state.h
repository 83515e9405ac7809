// State: the GPUs of the fake driver, and how their refusals become CUDA's results.
//
// The environment says what they are like:
//   FAKE_CUDA_GPUS        how many there are; 1 if unset
//   CUDA_VISIBLE_DEVICES  so many of them as it lists; none if it is empty
//   CUDA_DEVICE_MAX_CONNECTIONS  the number of queues that streams share (GpuOptions::connections)
//   CUDA_MODULE_LOADING=EAGER  kernels are loaded with their module, and not by their first launch
//   FAKE_CUDA_WORDS=0     without stream memory operations
//   FAKE_CUDA_READ_ONLY=0 pins no memory for reading alone
//   FAKE_CUDA_LENDS=0     lends no memory to other processes
//   FAKE_CUDA_APART=1     no GPU reaches another one
//   FAKE_CUDA_SET_UP_WAITS=0 makes and drops queues and marks at once, whatever is outstanding
//   FAKE_CUDA_SEED, FAKE_CUDA_DELAY_US, FAKE_CUDA_SLOTS, FAKE_CUDA_FAILS_CALL, FAKE_CUDA_BREAKS_AT, FAKE_CUDA_STOPS_AT
//                         as GpuOptions has them (seed, delay_us, queue_slots, ...)
// Misuse is an error, and a line on stderr.
#pragma once

#include <cuda.h>

#include <memory>
#include <vector>

#include "devices/gpu.h"

namespace fccl::core::simulated {

// The driver of this process, made by cuInit. A fork of a process that has one gets none. Never destroyed, as queues run until
// the end of the process.
struct FakeDriver {
  std::vector<std::unique_ptr<Gpu>> gpus;
};

// CUDA_ERROR_NO_DEVICE, CUDA_ERROR_NOT_INITIALIZED in a fork, or success.
CUresult initialise();
// Null before cuInit has succeeded, and in a fork.
FakeDriver* fake_driver();
Gpu* gpu_at(CUdevice device);

// True if the calling thread may not make calls that could be unsafe for a recorded graph, by the modes of the recording and of
// the thread. The call then spoils the recording, as with CUDA.
bool is_prohibited();

CUresult result_of(const Refusal& refusal);
template <class T>
CUresult result_of(const Answer<T>& answer) {
  return answer ? CUDA_SUCCESS : result_of(answer.error());
}
// Stores the value of an answer.
template <class T, class Out>
CUresult give(const Answer<T>& answer, Out* out) {
  if (!answer) return result_of(answer.error());
  *out = static_cast<Out>(*answer);
  return CUDA_SUCCESS;
}

// Calls `call(gpu, queue)` for a stream of the current GPU.
template <class Call>
CUresult on_stream(CUstream stream, Call call) {
  Gpu* const gpu = GpuContext::current();
  if (fake_driver() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (gpu == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const Answer<GpuQueue*> queue = gpu->queue_of(stream);
  if (!queue) return CUDA_ERROR_INVALID_HANDLE;
  return call(*gpu, *queue);
}

// Calls `call(gpu)` for the current GPU.
template <class Call>
CUresult on_current(Call call) {
  Gpu* const gpu = GpuContext::current();
  if (fake_driver() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return gpu == nullptr ? CUDA_ERROR_INVALID_CONTEXT : call(*gpu);
}

// The address in a Gpu for a CUdeviceptr or a host pointer of the driver's functions.
// NOLINTNEXTLINE(performance-no-int-to-ptr): CUDA declares them as integers.
inline std::byte* bytes_at(CUdeviceptr address) { return reinterpret_cast<std::byte*>(address); }

}  // namespace fccl::core::simulated
