// Words: memory through which host and GPU signal each other without a driver call.
#pragma once

#include <atomic>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fccl::core {

// A 64-bit word of pinned memory with one writer: the GPU, by an operation on a queue, or one thread of the host at a time.
using DeviceWord = std::atomic<uint64_t>;

// A number greater than any that a queue waits for, but near enough that the comparison of wrapping numbers still holds
// (WordOperation).
inline constexpr uint64_t kFarAhead = uint64_t{1} << 62;

// True if the word has reached `target`, by the comparison that a queue makes.
inline bool has_come(const DeviceWord& word, uint64_t target) {
  return static_cast<int64_t>(word.load(std::memory_order_acquire) - target) >= 0;
}

// Writes a word that a queue may wait for; the host must use no other function for this. The fence orders the streaming stores
// of results, which a release store on x86 does not.
inline void release_to_device(DeviceWord& word, uint64_t value) {
#if defined(__x86_64__)
  _mm_sfence();
#elif defined(__aarch64__)
  asm volatile("dmb oshst" ::: "memory");
#endif
  word.store(value, std::memory_order_release);
}

}  // namespace fccl::core
