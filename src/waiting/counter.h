// Counter: a number in shared memory that one rank raises and others wait for.
#pragma once

#include <atomic>
#include <cstdint>

namespace fccl::core {

static_assert(std::atomic<uint64_t>::is_always_lock_free, "counters are shared between processes");

// Tells the processor that this thread does nothing but wait.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// A counter alone in its cache line. One rank writes it; any rank may read it. A reader that sees the count also sees
// everything written before publish.
struct alignas(64) Counter {
  std::atomic<uint64_t> value{0};

  void publish(uint64_t reached) { value.store(reached, std::memory_order_release); }
};

// A condition to wait for: *where has reached `target` or passed it, modulo 2^64. `rank` is the rank that raises the counter.
struct Awaited {
  const std::atomic<uint64_t>* where = nullptr;
  uint64_t target = 0;
  int rank = -1;

  bool reached() const { return static_cast<int64_t>(where->load(std::memory_order_acquire) - target) >= 0; }
  // Checks `times` times, with a pause in between.
  bool reached_within(int times) const {
    for (int i = 0; i < times; ++i) {
      if (reached()) return true;
      spin_pause();
    }
    return false;
  }
};

}  // namespace fccl::core
