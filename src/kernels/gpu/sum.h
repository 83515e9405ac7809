// The arithmetic of sums on a GPU, for g++ and nvcc alike. It has the bits of kernels/reduce.h: conversions are in integers,
// and additions and multiplications are those of float32, rounded to nearest and never fused.
#pragma once

#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define FCCL_EITHER __host__ __device__ __forceinline__
#define FCCL_UNROLL _Pragma("unroll")
#else
#define FCCL_EITHER inline
#define FCCL_UNROLL _Pragma("GCC unroll 8")
#endif

namespace fccl::core::gpu {

constexpr int kLeastSources = 2, kMostSources = 8;
constexpr int kThreadsPerBlock = 512;

// A kernel gets it by value. Addresses are the GPU's, and may be odd. `factors` is read by premul_sum alone: where each
// source's factor is, an element of the sources' type.
struct SumWork {
  void* out;
  const void* sources[kMostSources];
  const void* factors[kMostSources];
  uint64_t count;
};

enum class SumOp : uint8_t { sum, avg, premul_sum };

FCCL_EITHER uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

FCCL_EITHER float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// The place of the highest bit; `bits` is not 0.
FCCL_EITHER int highest_bit(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return 31 - __clz(static_cast<int>(bits));
#else
  return 31 - __builtin_clz(bits);
#endif
}

// Drops `shift` bits, 1 to 30, and rounds to nearest, ties to even. No carry leaves 32 bits.
FCCL_EITHER uint32_t rounded_shift(uint32_t bits, int shift) {
  return (bits + (1u << (shift - 1)) - 1 + (bits >> shift & 1)) >> shift;
}

constexpr uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000, kNan = 0x7fc00000;  // of float32
constexpr uint32_t kHiddenBit = 1 << 23;

FCCL_EITHER bool is_nan(uint32_t bits) { return (bits & kMagnitude) > kInfinity; }

struct Float32 {
  using Stored = uint32_t;
  static FCCL_EITHER float widened(Stored bits) { return float_of(bits); }
  static FCCL_EITHER Stored stored(float value) {
    const uint32_t bits = bits_of(value);
    return is_nan(bits) ? kNan : bits;
  }
};

struct Bfloat16 {
  using Stored = uint16_t;
  static FCCL_EITHER float widened(Stored bits) { return float_of(static_cast<uint32_t>(bits) << 16); }
  static FCCL_EITHER Stored stored(float value) {
    const uint32_t bits = bits_of(value);
    if (is_nan(bits)) return 0x7fc0;
    return static_cast<Stored>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};

struct Float16 {
  using Stored = uint16_t;
  static constexpr uint32_t kOverflow = 0x7c00;    // infinity; larger magnitudes are NaN
  static constexpr uint32_t kRebias = 112u << 23;  // from this exponent to that of float32
  static constexpr uint32_t kLeastNormal = kRebias + kHiddenBit;

  static FCCL_EITHER float widened(Stored bits) {
    const uint32_t magnitude = bits & 0x7fff, sign = static_cast<uint32_t>(bits & 0x8000) << 16;
    if (magnitude > kOverflow) return float_of(sign | kNan);
    if (magnitude == kOverflow) return float_of(sign | kInfinity);
    if (magnitude >= 0x400) return float_of(sign | ((magnitude << 13) + kRebias));
    if (magnitude == 0) return float_of(sign);
    const int highest = highest_bit(magnitude);
    // The hidden bit adds 1 to the exponent.
    return float_of(sign | ((static_cast<uint32_t>(highest + 102) << 23) + (magnitude << (23 - highest))));
  }

  static FCCL_EITHER Stored stored(float value) {
    const uint32_t bits = bits_of(value), magnitude = bits & kMagnitude, sign = bits >> 16 & 0x8000;
    if (is_nan(bits)) return 0x7e00;
    if (magnitude >= kRebias + (kOverflow << 13)) return static_cast<Stored>(sign | kOverflow);
    if (magnitude >= kLeastNormal) return static_cast<Stored>(sign | rounded_shift(magnitude - kRebias, 13));
    const int dropped = 126 - static_cast<int>(magnitude >> 23);
    if (dropped > 24) return static_cast<Stored>(sign);
    return static_cast<Stored>(sign | rounded_shift((magnitude & (kHiddenBit - 1)) | kHiddenBit, dropped));
  }
};

// Divides by 3, 5, 6 or 7. The quotient has two bits more than a mantissa, the last of which also stands for the remainder, so
// that it is rounded once. In integers, since a GPU divides floats by fused operations.
template <int divisor>
FCCL_EITHER float quotient(float dividend) {
  const uint32_t bits = bits_of(dividend), magnitude = bits & kMagnitude, sign = bits & ~kMagnitude;
  if (magnitude >= kInfinity || magnitude == 0) return dividend;
  int exponent = static_cast<int>(magnitude >> 23);
  uint32_t mantissa = (magnitude & (kHiddenBit - 1)) | kHiddenBit;
  if (exponent == 0) {
    const int missing = 23 - highest_bit(magnitude);
    mantissa = magnitude << missing;
    exponent = 1 - missing;
  }
  const uint32_t scaled = mantissa << 5, whole = scaled / divisor;
  const uint32_t exact = whole | (whole * divisor != scaled ? 1 : 0);
  int dropped = highest_bit(exact) - 23;
  exponent += dropped - 5;
  if (exponent < 1) {  // a subnormal has the exponent of the least normal
    dropped += 1 - exponent;
    exponent = 1;
  }
  // The hidden bit, where there is one, adds 1 to the exponent.
  return float_of(sign | ((static_cast<uint32_t>(exponent - 1) << 23) + rounded_shift(exact, dropped)));
}

// One element of a sum over `source_count` sources, in the order of kernels/reduce.h.
template <SumOp op, class In, class Out, int source_count>
struct Sum {
  static_assert(source_count >= kLeastSources && source_count <= kMostSources);
  static constexpr SumOp kOp = op;
  static constexpr int kSources = source_count;
  using Source = In;
  using Result = Out;

  static FCCL_EITHER typename Out::Stored of(const typename In::Stored (&values)[source_count],
                                             const float (&factors)[source_count]) {
    float root = subtree<0, source_count>(values, factors);
    if constexpr (op == SumOp::avg) root = average(root);
    return Out::stored(root);
  }

 private:
  template <int first, int count>
  static FCCL_EITHER float subtree(const typename In::Stored (&values)[source_count], const float (&factors)[source_count]) {
    if constexpr (count == 1) {
      const float value = In::widened(values[first]);
      if constexpr (op == SumOp::premul_sum) return value * factors[first];
      return value;
    } else {
      constexpr int kLeft = count > 4 ? 4 : count > 2 ? 2 : 1;  // the largest power of two below `count`
      return subtree<first, kLeft>(values, factors) + subtree<first + kLeft, count - kLeft>(values, factors);
    }
  }

  static FCCL_EITHER float average(float sum) {
    if constexpr ((source_count & (source_count - 1)) == 0)
      return sum * (1.0f / source_count);
    else
      return quotient<source_count>(sum);
  }
};

template <class Stored>
FCCL_EITHER bool is_aligned_for(const unsigned char* at) {
  return reinterpret_cast<uintptr_t>(at) % sizeof(Stored) == 0;
}

template <class Stored>
FCCL_EITHER Stored load(const void* from, uint64_t index) {
  const unsigned char* const at = static_cast<const unsigned char*>(from) + index * sizeof(Stored);
  if (is_aligned_for<Stored>(at)) return *reinterpret_cast<const Stored*>(at);
  Stored value = 0;
  for (unsigned byte = 0; byte < sizeof(Stored); ++byte)
    value = static_cast<Stored>(value | static_cast<Stored>(at[byte]) << 8 * byte);
  return value;
}

template <class Stored>
FCCL_EITHER void store(void* to, uint64_t index, Stored value) {
  unsigned char* const at = static_cast<unsigned char*>(to) + index * sizeof(Stored);
  if (is_aligned_for<Stored>(at)) {
    *reinterpret_cast<Stored*>(at) = value;
    return;
  }
  for (unsigned byte = 0; byte < sizeof(Stored); ++byte) at[byte] = static_cast<unsigned char>(value >> 8 * byte);
}

template <class Kind>
FCCL_EITHER void load_factors(const SumWork& work, float (&factors)[Kind::kSources]) {
  for (int source = 0; source < Kind::kSources; ++source) {
    factors[source] = 1;
    if constexpr (Kind::kOp == SumOp::premul_sum)
      factors[source] = Kind::Source::widened(load<typename Kind::Source::Stored>(work.factors[source], 0));
  }
}

// Computes elements begin, begin + step, and so on, one at a time.
template <class Kind>
FCCL_EITHER void sum_elements(const SumWork& work, const float (&factors)[Kind::kSources], uint64_t begin, uint64_t step) {
  for (uint64_t index = begin; index < work.count; index += step) {
    typename Kind::Source::Stored values[Kind::kSources];
    FCCL_UNROLL
    for (int source = 0; source < Kind::kSources; ++source)
      values[source] = load<typename Kind::Source::Stored>(work.sources[source], index);
    store(work.out, index, Kind::of(values, factors));
  }
}

}  // namespace fccl::core::gpu

// Every kernel, as MAKE(name, op, In, Out, sources). A name is that of the type, of float32 where that is the wider result of
// another type, of the operator, and the number of sources: sum_bfloat16_avg_3, sum_bfloat16_float32_avg_3.
#define FCCL_EACH_SUM(MAKE)                             \
  FCCL_SUMS_OF(MAKE, float32, Float32, Float32)         \
  FCCL_SUMS_OF(MAKE, float16, Float16, Float16)         \
  FCCL_SUMS_OF(MAKE, bfloat16, Bfloat16, Bfloat16)      \
  FCCL_SUMS_OF(MAKE, float16_float32, Float16, Float32) \
  FCCL_SUMS_OF(MAKE, bfloat16_float32, Bfloat16, Float32)
#define FCCL_SUMS_OF(MAKE, type, In, Out) \
  FCCL_SUMS_BY(MAKE, type, sum, In, Out)  \
  FCCL_SUMS_BY(MAKE, type, avg, In, Out)  \
  FCCL_SUMS_BY(MAKE, type, premul_sum, In, Out)
#define FCCL_SUMS_BY(MAKE, type, op, In, Out) \
  MAKE(sum_##type##_##op##_2, op, In, Out, 2) \
  MAKE(sum_##type##_##op##_3, op, In, Out, 3) \
  MAKE(sum_##type##_##op##_4, op, In, Out, 4) \
  MAKE(sum_##type##_##op##_5, op, In, Out, 5) \
  MAKE(sum_##type##_##op##_6, op, In, Out, 6) \
  MAKE(sum_##type##_##op##_7, op, In, Out, 7) \
  MAKE(sum_##type##_##op##_8, op, In, Out, 8)
