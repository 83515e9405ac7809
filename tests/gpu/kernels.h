// The few kernels of the probes, to be launched from files that the host's compiler compiles.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace fccl::gpu {

// The pattern of all buffers: word `index` of the buffer with this seed.
#ifdef __CUDACC__
__host__ __device__
#endif
    inline uint32_t
    pattern(uint32_t seed, uint64_t index) {
  uint32_t mixed = seed * 0x9e3779b9u + static_cast<uint32_t>(index) + static_cast<uint32_t>(index >> 32) * 0x85ebca6bu;
  mixed ^= mixed >> 16;
  mixed *= 0x7feb352du;
  mixed ^= mixed >> 15;
  mixed *= 0x846ca68bu;
  return mixed ^ (mixed >> 16);
}

void launch_fill(cudaStream_t stream, void* to, size_t bytes, uint32_t seed);
// Adds to *wrong the number of words that are not those of the pattern.
void launch_compare(cudaStream_t stream, const void* from, size_t bytes, uint32_t seed, unsigned long long* wrong);

// One thread that, for value = 1 to rounds, waits until *in has it and writes it to *out; or writes it first and waits then, if
// it begins. No wait takes longer than limit_ns: at that *reached stays where it was. *reached is the last value that came.
struct Echo {
  const uint32_t* in;
  uint32_t* out;
  uint32_t rounds;
  bool begins;
  uint64_t limit_ns;
  uint32_t* reached;
};
void launch_echo(cudaStream_t stream, const Echo& echo);

// Keeps every SM full until *stop is not 0, at most for limit_ns. Block b sets the flag that lies b strides behind *started.
struct Occupation {
  uint32_t* started;
  size_t stride;  // in words
  const uint32_t* stop;
  uint64_t limit_ns;
};
// The number of blocks that are launched, each of which takes all the room that an SM gives to one block.
int launch_occupation(cudaStream_t stream, const Occupation& occupation);

}  // namespace fccl::gpu
