// FloatEnvironment: the rounding mode and the treatment of subnormals that every sum is made under, whatever the caller's are.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace fccl {

// The control register of the processor's floating-point arithmetic, but for its flags of exceptions that have happened.
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
  static constexpr Word kFlags = 0;    // they are in another register
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

// Rounds to nearest and keeps subnormals for as long as it lives on this thread, then gives back what it found. Writing the
// register costs more than a small sum, so it is left alone where it is right. The compiler may move arithmetic across the
// ends of this object's life, unless it happens in a function that is not inlined.
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

}  // namespace fccl
