// The kernels of the probes: patterns, bounded waits and an occupation of all SMs.
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "kernels.h"

namespace fccl::gpu {

namespace {

constexpr int kThreads = 256;

void check_launch(const char* name) {
  const cudaError_t launched = cudaGetLastError();
  if (launched != cudaSuccess)
    throw std::runtime_error(std::string(name) + " was not launched: " + cudaGetErrorString(launched));
}

int blocks_for(size_t items) {
  constexpr size_t kMostBlocks = 1024;
  const size_t wanted = (items + kThreads - 1) / kThreads;
  return static_cast<int>(wanted < kMostBlocks ? (wanted == 0 ? 1 : wanted) : kMostBlocks);
}

__device__ uint64_t now_ns() {
  uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__device__ uint32_t load_acquire(const uint32_t* from) {
  uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}

__device__ void store_release(uint32_t* to, uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" : : "l"(to), "r"(value) : "memory");
}

__global__ void fill(uint32_t* to, size_t words, uint32_t seed) {
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t at = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; at < words; at += step)
    to[at] = pattern(seed, at);
}

__global__ void compare(const uint32_t* from, size_t words, uint32_t seed, unsigned long long* wrong) {
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  unsigned long long found = 0;
  for (size_t at = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; at < words; at += step) {
    found += from[at] != pattern(seed, at);
  }
  if (found != 0) atomicAdd(wrong, found);
}

// A wait for a flag that ends at the limit, also where the other side is dead.
__device__ bool await(const uint32_t* flag, uint32_t value, uint64_t limit_ns) {
  const uint64_t begin = now_ns();
  while (static_cast<int32_t>(load_acquire(flag) - value) < 0) {
    if (now_ns() - begin > limit_ns) return false;
  }
  return true;
}

__global__ void echo_flags(Echo echo) {
  for (uint32_t value = 1; value <= echo.rounds; ++value) {
    if (echo.begins) store_release(echo.out, value);
    if (!await(echo.in, value, echo.limit_ns)) return;
    if (!echo.begins) store_release(echo.out, value);
    store_release(echo.reached, value);
  }
}

__global__ void occupy(Occupation occupation) {
  // One thread looks for all, so that the bus to the host stays free.
  if (threadIdx.x == 0) {
    store_release(occupation.started + blockIdx.x * occupation.stride, 1);
    const uint64_t begin = now_ns();
    while (load_acquire(occupation.stop) == 0 && now_ns() - begin < occupation.limit_ns) __nanosleep(5000);
  }
  __syncthreads();
}

}  // namespace

void launch_fill(cudaStream_t stream, void* to, size_t bytes, uint32_t seed) {
  const size_t words = bytes / sizeof(uint32_t);
  fill<<<blocks_for(words), kThreads, 0, stream>>>(static_cast<uint32_t*>(to), words, seed);
  check_launch("fill");
}

void launch_compare(cudaStream_t stream, const void* from, size_t bytes, uint32_t seed, unsigned long long* wrong) {
  const size_t words = bytes / sizeof(uint32_t);
  compare<<<blocks_for(words), kThreads, 0, stream>>>(static_cast<const uint32_t*>(from), words, seed, wrong);
  check_launch("compare");
}

void launch_echo(cudaStream_t stream, const Echo& echo) {
  echo_flags<<<1, 1, 0, stream>>>(echo);
  check_launch("echo_flags");
}

int launch_occupation(cudaStream_t stream, const Occupation& occupation) {
  int device = 0, processors = 0, room = 0, most_threads = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  cudaDeviceGetAttribute(&most_threads, cudaDevAttrMaxThreadsPerBlock, device);
  cudaFuncSetAttribute(occupy, cudaFuncAttributeMaxDynamicSharedMemorySize, room);
  occupy<<<processors, most_threads, room, stream>>>(occupation);
  check_launch("occupy");
  return processors;
}

}  // namespace fccl::gpu
