// The kernels of sums: loads, stores and the grid; sum.h has the arithmetic. Compile with --fmad=false.
#include "kernels/gpu/sum.h"

namespace fccl::core::gpu {

constexpr unsigned kPackBytes = 16;

union Pack {
  uint4 words;
  uint32_t wide[4];
  uint16_t narrow[8];
};

__device__ __forceinline__ void take(const Pack& pack, int index, uint32_t& value) { value = pack.wide[index]; }
__device__ __forceinline__ void take(const Pack& pack, int index, uint16_t& value) { value = pack.narrow[index]; }
__device__ __forceinline__ void put(Pack& pack, int index, uint32_t value) { pack.wide[index] = value; }
__device__ __forceinline__ void put(Pack& pack, int index, uint16_t value) { pack.narrow[index] = value; }

template <class Kind>
__device__ bool is_aligned(const SumWork& work) {
  auto all = reinterpret_cast<uintptr_t>(work.out);
  for (int source = 0; source < Kind::kSources; ++source) all |= reinterpret_cast<uintptr_t>(work.sources[source]);
  return all % kPackBytes == 0;
}

// Sums packs of 16 bytes of each source, some at once: what is read before anything is written hides how long a read takes.
template <class Kind>
struct Packs {
  using In = typename Kind::Source::Stored;
  using Out = typename Kind::Result::Stored;
  static constexpr int kElements = kPackBytes / sizeof(In);
  static constexpr int kOutElements = kPackBytes / sizeof(Out);
  static constexpr int kAtOnce = Kind::kSources <= 2 ? 3 : Kind::kSources <= 4 ? 2 : 1;

  // Sums pack `first`, and those that lie 1, 2 ... times `step` behind it.
  template <int at_once>
  static __device__ __forceinline__ void sum(const SumWork& work, const float (&factors)[Kind::kSources], uint64_t first,
                                             uint64_t step) {
    Pack packs[at_once][Kind::kSources];
#pragma unroll
    for (int each = 0; each < at_once; ++each)
#pragma unroll
      for (int source = 0; source < Kind::kSources; ++source)
        packs[each][source].words = static_cast<const uint4*>(work.sources[source])[first + each * step];
#pragma unroll
    for (int each = 0; each < at_once; ++each) store(work, factors, packs[each], first + each * step);
  }

 private:
  static __device__ __forceinline__ void store(const SumWork& work, const float (&factors)[Kind::kSources],
                                               const Pack (&packs)[Kind::kSources], uint64_t at) {
#pragma unroll
    for (int begin = 0; begin < kElements; begin += kOutElements) {
      Pack result;
#pragma unroll
      for (int element = 0; element < kOutElements; ++element) {
        In values[Kind::kSources];
#pragma unroll
        for (int source = 0; source < Kind::kSources; ++source) take(packs[source], begin + element, values[source]);
        put(result, element, Kind::of(values, factors));
      }
      static_cast<uint4*>(work.out)[(at * kElements + begin) / kOutElements] = result.words;
    }
  }
};

template <class Kind>
__device__ __forceinline__ void sum(const SumWork& work) {
  using Packs = Packs<Kind>;
  const uint64_t thread = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x, threads = uint64_t{gridDim.x} * blockDim.x;
  float factors[Kind::kSources];
  load_factors<Kind>(work, factors);
  uint64_t done = 0;
  if (is_aligned<Kind>(work)) {
    const uint64_t packs = work.count / Packs::kElements;
    uint64_t pack = thread;
    for (; pack + (Packs::kAtOnce - 1) * threads < packs; pack += Packs::kAtOnce * threads)
      Packs::template sum<Packs::kAtOnce>(work, factors, pack, threads);
    for (; pack < packs; pack += threads) Packs::template sum<1>(work, factors, pack, threads);
    done = packs * Packs::kElements;
  }
  sum_elements<Kind>(work, factors, done + thread, threads);
}

}  // namespace fccl::core::gpu

// Two blocks of a processor fit at the same time where a thread has at most 64 registers.
#define FCCL_KERNEL(name, op, In, Out, sources)                                      \
  extern "C" __global__ void __launch_bounds__(fccl::core::gpu::kThreadsPerBlock, 2) \
      name(const fccl::core::gpu::SumWork work) {                                    \
    namespace gpu = fccl::core::gpu;                                                 \
    gpu::sum<gpu::Sum<gpu::SumOp::op, gpu::In, gpu::Out, sources>>(work);            \
  }
FCCL_EACH_SUM(FCCL_KERNEL)
