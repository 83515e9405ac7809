// The kernels of the probes: patterns, bounded waits, an occupation of all SMs, and sums in tree order.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "kernels.h"

namespace fccl::gpu {

namespace {

constexpr int kThreads = 256;
constexpr int kReduceThreads = 512;

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

__device__ float tree_sum(const float (&parts)[1]) { return parts[0]; }
__device__ float tree_sum(const float (&parts)[2]) { return parts[0] + parts[1]; }
__device__ float tree_sum(const float (&parts)[4]) { return (parts[0] + parts[1]) + (parts[2] + parts[3]); }
__device__ float tree_sum(const float (&parts)[8]) {
  return ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
}

__device__ float widen(float element) { return element; }
__device__ float widen(__nv_bfloat16 element) { return __bfloat162float(element); }
__device__ void narrow(float sum, float& out) { out = sum; }
__device__ void narrow(float sum, __nv_bfloat16& out) { out = __float2bfloat16_rn(sum); }

template <class T>
struct alignas(16) Vector {
  static constexpr int kSize = 16 / sizeof(T);
  T at[kSize];
};

template <class T, int sources>
__device__ void add_vector(const Reduction& reduction, size_t index, const Vector<T> (&in)[sources]) {
  Vector<T> out;
#pragma unroll
  for (int lane = 0; lane < Vector<T>::kSize; ++lane) {
    float parts[sources];
#pragma unroll
    for (int source = 0; source < sources; ++source) parts[source] = widen(in[source].at[lane]);
    narrow(tree_sum(parts), out.at[lane]);
  }
  static_cast<Vector<T>*>(reduction.out)[index] = out;
}

// Each thread has 8 loads of 16 bytes under way, for any number of sources.
template <class T, int sources>
__global__ void __launch_bounds__(kReduceThreads, 1) reduce(Reduction reduction) {
  constexpr int kTogether = kMostSources / sources;
  const size_t vectors = reduction.elements / Vector<T>::kSize;
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  const size_t first = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  size_t index = first;
  for (; index + (kTogether - 1) * step < vectors; index += kTogether * step) {
    Vector<T> in[kTogether][sources];
#pragma unroll
    for (int each = 0; each < kTogether; ++each) {
#pragma unroll
      for (int source = 0; source < sources; ++source) {
        in[each][source] = static_cast<const Vector<T>*>(reduction.sources[source])[index + each * step];
      }
    }
#pragma unroll
    for (int each = 0; each < kTogether; ++each) add_vector<T, sources>(reduction, index + each * step, in[each]);
  }
  for (; index < vectors; index += step) {
    Vector<T> in[sources];
#pragma unroll
    for (int source = 0; source < sources; ++source)
      in[source] = static_cast<const Vector<T>*>(reduction.sources[source])[index];
    add_vector<T, sources>(reduction, index, in);
  }
  for (size_t element = vectors * Vector<T>::kSize + first; element < reduction.elements; element += step) {
    float parts[sources];
#pragma unroll
    for (int source = 0; source < sources; ++source)
      parts[source] = widen(static_cast<const T*>(reduction.sources[source])[element]);
    narrow(tree_sum(parts), static_cast<T*>(reduction.out)[element]);
  }
}

template <class T>
void launch_reduction_of(cudaStream_t stream, const Reduction& reduction, int blocks) {
  switch (reduction.count) {
    case 1:
      return reduce<T, 1><<<blocks, kReduceThreads, 0, stream>>>(reduction);
    case 2:
      return reduce<T, 2><<<blocks, kReduceThreads, 0, stream>>>(reduction);
    case 4:
      return reduce<T, 4><<<blocks, kReduceThreads, 0, stream>>>(reduction);
    case 8:
      return reduce<T, 8><<<blocks, kReduceThreads, 0, stream>>>(reduction);
    default:
      throw std::invalid_argument("a reduction has 1, 2, 4 or 8 sources");
  }
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

void launch_reduction(cudaStream_t stream, const Reduction& reduction, int blocks) {
  if (reduction.element == Element::bf16) {
    launch_reduction_of<__nv_bfloat16>(stream, reduction, blocks);
  } else {
    launch_reduction_of<float>(stream, reduction, blocks);
  }
  check_launch("reduce");
}

}  // namespace fccl::gpu
