// Counter: a number in shared memory that one rank raises and others wait for.
#pragma once

#include <atomic>
#include <cstdint>

namespace fccl {

static_assert(std::atomic<uint64_t>::is_always_lock_free, "counters are shared between processes");

// Tells the processor that this thread does nothing but wait.
inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Alone in its cache line. Written by one rank, read by any; what was written before publish is seen after reached.
struct alignas(64) Counter {
  std::atomic<uint64_t> value{0};

  void publish(uint64_t reached) { value.store(reached, std::memory_order_release); }
};

// A wait that can be looked at from outside: until *where has come to `target` or passed it, modulo 2^64. `rank` is who raises
// it.
struct Awaited {
  const std::atomic<uint64_t>* where = nullptr;
  uint64_t target = 0;
  int rank = -1;

  bool reached() const { return static_cast<int64_t>(where->load(std::memory_order_acquire) - target) >= 0; }
  // Looks `times` times, with a pause between.
  bool reached_within(int times) const {
    for (int i = 0; i < times; ++i) {
      if (reached()) return true;
      pause();
    }
    return false;
  }
};

}  // namespace fccl
