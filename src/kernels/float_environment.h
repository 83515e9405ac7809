// FloatEnvironment: gives every sum the same rounding mode and treatment of subnormals, regardless of the caller's.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace fccl::core {

// The processor's control register for floating-point arithmetic. kFlags are its sticky exception flags, which do not count as
// control.
struct FloatControl {
#if defined(__SSE2__)
  using Word = uint32_t;
  static constexpr Word kDefault = 0x1f80;  // nearest, subnormals kept (neither FTZ nor DAZ), no exception traps
  static constexpr Word kFlags = 0x3f;
  static Word read() { return _mm_getcsr(); }
  static void write(Word word) { _mm_setcsr(word); }
#elif defined(__aarch64__)
  using Word = uint64_t;
  static constexpr Word kDefault = 0;  // nearest, subnormals kept, NaNs propagated, no exception traps
  static constexpr Word kFlags = 0;    // the flags are in another register
  static Word read() {
    Word word;
    asm volatile("mrs %0, fpcr" : "=r"(word)::"memory");
    return word;
  }
  static void write(Word word) { asm volatile("msr fpcr, %0" ::"r"(word) : "memory"); }
#else
#error "The control register of this processor's floating-point arithmetic is not known here"
#endif
};

// Makes this thread round to nearest and keep subnormals while it lives, then restores the register. Leaves a register that is
// right alone, because writing it costs more than a small sum. The compiler may move inlined arithmetic across the ends of this
// object's life; arithmetic in a function that is not inlined stays inside.
class FloatEnvironment {
 public:
  FloatEnvironment() : found_(FloatControl::read()) {
    if (!is_right()) FloatControl::write(FloatControl::kDefault);
  }
  ~FloatEnvironment() {
    if (!is_right()) FloatControl::write(found_);
  }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  bool is_right() const { return (found_ & ~FloatControl::kFlags) == FloatControl::kDefault; }

  FloatControl::Word found_;
};

}  // namespace fccl::core
