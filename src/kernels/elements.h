// Elements: how the elements of each data type are loaded, multiplied, divided and stored; once per instruction set.

// Highway's guard: open once per instruction set.
#if defined(FCCL_KERNELS_ELEMENTS_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FCCL_KERNELS_ELEMENTS_H
#undef FCCL_KERNELS_ELEMENTS_H
#else
#define FCCL_KERNELS_ELEMENTS_H
#endif

#include "kernels/targets.h"
// This include must follow targets.h.
#include <hwy/highway.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace fccl::core::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Kernels reduce elements in chunks of two vectors of their wide type, the type in which they are added. Each format chooses
// its own order of lanes, since no operation combines two lanes.
template <class Vector>
struct Pair {
  Vector first, second;
};

template <class T>
using Lanes = hn::ScalableTag<T>;
template <class T>
using Vector = hn::Vec<Lanes<T>>;

// Loads by bytes, since an element may lie at any address.
template <class D>
hn::Vec<D> load_bytes(D d, const std::byte* at) {
  return hn::BitCast(d, hn::LoadU(hn::Repartition<uint8_t, D>(), reinterpret_cast<const uint8_t*>(at)));
}

template <class V>
void store_bytes(V vector, std::byte* at) {
  const hn::Repartition<uint8_t, hn::DFromV<V>> bytes;
  hn::StoreU(hn::BitCast(bytes, vector), bytes, reinterpret_cast<uint8_t*>(at));
}

// Multiplies; integers wrap modulo 2^n. Highway cannot multiply bytes or 64-bit integers.
template <class T>
Vector<T> multiply(Vector<T> a, Vector<T> b) {
  if constexpr (std::is_integral_v<T> && sizeof(T) == 1) {
    const Lanes<T> d;
    const hn::Repartition<uint16_t, Lanes<T>> wide;
    const auto x = hn::BitCast(wide, a), y = hn::BitCast(wide, b);
    const auto odd = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(x), hn::ShiftRight<8>(y)));
    return hn::BitCast(d, hn::Or(odd, hn::And(hn::Mul(x, y), hn::Set(wide, 0xff))));
  } else if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
    const Lanes<uint64_t> d;
    const hn::Repartition<uint32_t, Lanes<T>> halves;
    const auto low_a = hn::BitCast(halves, a), high_a = hn::BitCast(halves, hn::ShiftRight<32>(hn::BitCast(d, a)));
    const auto low_b = hn::BitCast(halves, b), high_b = hn::BitCast(halves, hn::ShiftRight<32>(hn::BitCast(d, b)));
    const auto crossed = hn::Add(hn::MulEven(high_a, low_b), hn::MulEven(low_a, high_b));
    return hn::BitCast(Lanes<T>(), hn::Add(hn::MulEven(low_a, low_b), hn::ShiftLeft<32>(crossed)));
  } else {
    return hn::Mul(a, b);
  }
}

// Divides; integers truncate towards zero. The reciprocal of a power of two is exact, so multiplying by it gives the quotient.
// Small integers are divided as floats, which hold divisors up to 2^24 exactly: the gap between a quotient and the next larger
// integer exceeds the rounding error.
template <class T>
Vector<T> divide(Vector<T> sum, int divisor) {
  const Lanes<T> d;
  if constexpr (std::is_floating_point_v<T>) {
    if (std::has_single_bit(static_cast<unsigned>(divisor))) return hn::Mul(sum, hn::Set(d, T{1} / static_cast<T>(divisor)));
    return hn::Div(sum, hn::Set(d, static_cast<T>(divisor)));
  } else {
    using Exact = std::conditional_t<sizeof(T) <= 2, float, std::conditional_t<sizeof(T) == 4, double, T>>;
    HWY_ALIGN T lanes[hn::MaxLanes(d)];
    hn::Store(sum, d, lanes);
    for (T& lane : lanes) lane = static_cast<T>(static_cast<Exact>(lane) / static_cast<Exact>(divisor));
    return hn::Load(d, lanes);
  }
}

// Replaces every NaN by the same one: positive, quiet, without payload.
template <class T>
Vector<T> with_one_nan(Vector<T> value) {
  return hn::IfThenElse(hn::IsNaN(value), hn::Set(Lanes<T>(), std::numeric_limits<T>::quiet_NaN()), value);
}

// Copies the element with these bits into every lane.
template <class T>
Vector<T> broadcast(uint64_t bits) {
  T element;
  std::memcpy(&element, &bits, sizeof element);
  return hn::Set(Lanes<T>(), element);
}

// Types that are reduced as they are stored.
template <class T>
struct Plain {
  using Stored = T;
  using Wide = T;
  static constexpr size_t kVectorBytes = hn::MaxLanes(Lanes<T>()) * sizeof(T);

  static Vector<T> factor(uint64_t bits) { return broadcast<T>(bits); }
  static Pair<Vector<T>> load(const std::byte* at) {
    return {load_bytes(Lanes<T>(), at), load_bytes(Lanes<T>(), at + kVectorBytes)};
  }
  static void store(Pair<Vector<T>> pair, std::byte* at) {
    if constexpr (std::is_floating_point_v<T>) pair = {with_one_nan<T>(pair.first), with_one_nan<T>(pair.second)};
    store_bytes(pair.first, at);
    store_bytes(pair.second, at + kVectorBytes);
  }
};

// Any byte but zero is true; results are 0 and 1. A sum is the maximum of these, a product the minimum.
struct Bool : Plain<uint8_t> {
  static Pair<Vector<uint8_t>> load(const std::byte* at) {
    const auto one = hn::Set(Lanes<uint8_t>(), 1);
    const auto pair = Plain::load(at);
    return {hn::Min(pair.first, one), hn::Min(pair.second, one)};
  }
};

using Floats = Vector<float>;

template <class V>
Floats as_floats(V bits) {
  return hn::BitCast(Lanes<float>(), bits);
}

// bfloat16 is the upper half of a float32. A vector of bfloat16 becomes two vectors of float32: the odd elements and, shifted,
// the even ones.
struct Bfloat16 {
  using Stored = uint16_t;
  using Wide = float;

  static Floats factor(uint64_t bits) { return as_floats(hn::ShiftLeft<16>(broadcast<uint32_t>(bits))); }
  static Pair<Floats> load(const std::byte* at) {
    const Lanes<uint32_t> d;
    const auto both = load_bytes(d, at);
    return {as_floats(hn::ShiftLeft<16>(both)), as_floats(hn::And(both, hn::Set(d, 0xffff0000)))};
  }
  static void store(Pair<Floats> pair, std::byte* at) {
    const Lanes<uint32_t> d;
    const auto even = hn::ShiftRight<16>(rounded(pair.first));
    store_bytes(hn::Or(even, hn::And(rounded(pair.second), hn::Set(d, 0xffff0000))), at);
  }
  // Rounds to nearest, ties to even. The result is in the upper half. A NaN stays one.
  static Vector<uint32_t> rounded(Floats value) {
    const Lanes<uint32_t> d;
    const auto bits = hn::BitCast(d, with_one_nan<float>(value));
    const auto last = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
    return hn::Add(bits, hn::Add(last, hn::Set(d, 0x7fff)));
  }
};

// bfloat16 whose lanes keep the order of memory, for kernels whose sources and results differ in size.
struct OrderedBfloat16 {
  using Stored = uint16_t;
  using Wide = float;
  using Half = hn::Rebind<uint16_t, Lanes<float>>;
  static constexpr size_t kHalfBytes = hn::MaxLanes(Lanes<float>()) * sizeof(Stored);

  static Floats factor(uint64_t bits) { return Bfloat16::factor(bits); }
  static Pair<Floats> load(const std::byte* at) { return {load_half(at), load_half(at + kHalfBytes)}; }
  static void store(Pair<Floats> pair, std::byte* at) {
    store_half(pair.first, at);
    store_half(pair.second, at + kHalfBytes);
  }

 private:
  static Floats load_half(const std::byte* at) {
    return as_floats(hn::ShiftLeft<16>(hn::PromoteTo(Lanes<uint32_t>(), load_bytes(Half(), at))));
  }
  static void store_half(Floats value, std::byte* at) {
    const auto upper = hn::ShiftRight<16>(Bfloat16::rounded(value));
    store_bytes(hn::DemoteTo(Half(), hn::BitCast(Lanes<int32_t>(), upper)), at);
  }
};

// The narrow binary formats. kOverflow is the result of a number that is too large: infinity, or the largest number in a format
// without infinity. Larger bit patterns are NaN.
struct Binary16 {
  using Stored = uint16_t;
  static constexpr int kMantissaBits = 10, kBias = 15;
  static constexpr bool kHasInfinity = true;
  static constexpr int32_t kOverflow = 0x7c00, kNan = 0x7e00;
};
struct E5m2 {
  using Stored = uint8_t;
  static constexpr int kMantissaBits = 2, kBias = 15;
  static constexpr bool kHasInfinity = true;
  static constexpr int32_t kOverflow = 0x7c, kNan = 0x7f;
};
struct E4m3 {
  using Stored = uint8_t;
  static constexpr int kMantissaBits = 3, kBias = 7;
  static constexpr bool kHasInfinity = false;
  static constexpr int32_t kOverflow = 0x7e, kNan = 0x7f;
};

// Elements of a narrow format, converted to and from float32 by integer arithmetic.
template <class Format>
struct Narrow {
  using Stored = typename Format::Stored;
  using Wide = float;
  using Ints = Vector<int32_t>;
  using Half = hn::Rebind<Stored, Lanes<float>>;
  static constexpr size_t kHalfBytes = hn::MaxLanes(Lanes<float>()) * sizeof(Stored);

  static Floats factor(uint64_t bits) {
    return widen(hn::Set(Lanes<int32_t>(), static_cast<int32_t>(static_cast<Stored>(bits))));
  }
  static Pair<Floats> load(const std::byte* at) { return {load_half(at), load_half(at + kHalfBytes)}; }
  static void store(Pair<Floats> pair, std::byte* at) {
    store_half(pair.first, at);
    store_half(pair.second, at + kHalfBytes);
  }

 private:
  static constexpr int32_t kInfinity = 0x7f800000, kNan = 0x7fc00000;  // patterns of float32
  static constexpr int32_t kSign = 1 << (sizeof(Stored) * 8 - 1);
  static constexpr int kShift = 23 - Format::kMantissaBits;        // shift from this mantissa to that of float32
  static constexpr int32_t kRebias = (127 - Format::kBias) << 23;  // added to this exponent to get that of float32

  static Floats load_half(const std::byte* at) {
    return widen(hn::BitCast(Lanes<int32_t>(), hn::PromoteTo(Lanes<uint32_t>(), load_bytes(Half(), at))));
  }
  static void store_half(Floats value, std::byte* at) { store_bytes(hn::DemoteTo(Half(), narrow(value)), at); }

  static Floats widen(Ints bits) {
    const Lanes<int32_t> d;
    const auto magnitude = hn::And(bits, hn::Set(d, kSign - 1));
    const auto normal = hn::Add(hn::ShiftLeft<kShift>(magnitude), hn::Set(d, kRebias));
    const auto unit = hn::Set(Lanes<float>(), 1.0f / (1 << (Format::kBias + Format::kMantissaBits - 1)));
    const auto subnormal = hn::BitCast(d, hn::Mul(hn::ConvertTo(Lanes<float>(), magnitude), unit));
    auto value = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 1 << Format::kMantissaBits)), subnormal, normal);
    const auto overflow = hn::Set(d, Format::kOverflow);
    if constexpr (Format::kHasInfinity) value = hn::IfThenElse(hn::Eq(magnitude, overflow), hn::Set(d, kInfinity), value);
    value = hn::IfThenElse(hn::Gt(magnitude, overflow), hn::Set(d, kNan), value);
    return as_floats(hn::Or(value, hn::ShiftLeft<32 - 8 * sizeof(Stored)>(hn::And(bits, hn::Set(d, kSign)))));
  }

  // Rounds to nearest, ties to even, subnormals included.
  static Ints narrow(Floats value) {
    const Lanes<int32_t> d;
    const auto bits = hn::BitCast(d, value);
    const auto any_magnitude = hn::And(bits, hn::Set(d, 0x7fffffff));
    // Limits the magnitude to kOverflow as if that were a normal number, so larger numbers round to kOverflow.
    const auto magnitude = hn::Min(any_magnitude, hn::Set(d, kRebias + (Format::kOverflow << kShift)));
    const auto last = hn::And(hn::ShiftRight<kShift>(magnitude), hn::Set(d, 1));
    const auto to_nearest = hn::Set(d, (1 << (kShift - 1)) - 1 - kRebias);
    const auto normal = hn::ShiftRight<kShift>(hn::Add(magnitude, hn::Add(last, to_nearest)));
    // The last place of this number is the format's smallest subnormal, so the addition rounds as the format does.
    constexpr float kCoarse = 0x1p24f / (1 << (Format::kBias + Format::kMantissaBits));
    const auto coarse = hn::Set(Lanes<float>(), kCoarse);
    const auto subnormal = hn::Sub(hn::BitCast(d, hn::Add(as_floats(magnitude), coarse)), hn::BitCast(d, coarse));
    const auto is_subnormal = hn::Lt(magnitude, hn::Set(d, kRebias + (1 << 23)));
    const auto sign = hn::And(hn::ShiftRight<32 - 8 * sizeof(Stored)>(bits), hn::Set(d, kSign));
    const auto number = hn::Or(hn::IfThenElse(is_subnormal, subnormal, normal), sign);
    return hn::IfThenElse(hn::Gt(any_magnitude, hn::Set(d, kInfinity)), hn::Set(d, Format::kNan), number);
  }
};

// Processors with AVX2, and those of Arm, convert this format themselves.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
struct Float16 {
  using Stored = uint16_t;
  using Wide = float;
  using Half = hn::Rebind<hwy::float16_t, Lanes<float>>;
  static constexpr size_t kHalfBytes = hn::MaxLanes(Lanes<float>()) * sizeof(Stored);

  static Floats factor(uint64_t bits) {
    const hn::Rebind<uint16_t, Lanes<float>> half;
    return hn::PromoteTo(Lanes<float>(), hn::BitCast(Half(), hn::Set(half, static_cast<uint16_t>(bits))));
  }
  static Pair<Floats> load(const std::byte* at) { return {load_half(at), load_half(at + kHalfBytes)}; }
  static void store(Pair<Floats> pair, std::byte* at) {
    store_bytes(hn::DemoteTo(Half(), with_one_nan<float>(pair.first)), at);
    store_bytes(hn::DemoteTo(Half(), with_one_nan<float>(pair.second)), at + kHalfBytes);
  }

 private:
  static Floats load_half(const std::byte* at) { return hn::PromoteTo(Lanes<float>(), load_bytes(Half(), at)); }
};
#else
using Float16 = Narrow<Binary16>;
#endif

}  // namespace fccl::core::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
