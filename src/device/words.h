// Words: how the host tells the GPU, and hears from it, without a call.
#pragma once

#include <atomic>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fccl {

// A 64-bit word of pinned memory with one writer: the GPU, by an operation on a queue, or one thread of the host at a time.
using DeviceWord = std::atomic<uint64_t>;

// Beyond every value that a queue may be waiting for, and not yet behind it: words wrap (Device, WordOperation).
inline constexpr uint64_t kFarAhead = uint64_t{1} << 62;

// Whether a word has come to `target`, as a queue reads it.
inline bool has_come(const DeviceWord& word, uint64_t target) {
  return static_cast<int64_t>(word.load(std::memory_order_acquire) - target) >= 0;
}

// The one way in which the host writes a word that a queue may be waiting for. Phases write results past the caches, and no
// release store orders those on x86.
inline void release_to_device(DeviceWord& word, uint64_t value) {
#if defined(__x86_64__)
  _mm_sfence();
#elif defined(__aarch64__)
  asm volatile("dmb oshst" ::: "memory");
#endif
  word.store(value, std::memory_order_release);
}

}  // namespace fccl
