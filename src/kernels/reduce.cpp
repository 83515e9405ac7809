// The reduction kernels as plain loops over blocks, which the compiler vectorizes.
#include "kernels/reduce.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/check.h"
#include "kernels/float16.h"

namespace fccl {
namespace {

// Partial results of one block live on the stack, one block per level of the tree.
constexpr size_t kBlockBytes = 2048;
constexpr int kLevels = 16;
constexpr int kMaxSources = 1 << kLevels;

// How elements of a data type are stored, and the type that they are added in.
template <class T>
struct Plain {
  using Stored = T;
  using Wide = T;
  static T widen(T value) { return value; }
  static T narrow(T value) {
    if constexpr (std::is_floating_point_v<T>) return std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value;
    return value;
  }
};

struct Bfloat16 {
  using Stored = uint16_t;
  using Wide = float;
  static float widen(uint16_t value) { return float_from_bfloat16(value); }
  static uint16_t narrow(float value) { return bfloat16_from_float(value); }
};

struct Float16 {
  using Stored = uint16_t;
  using Wide = float;
  static float widen(uint16_t value) { return float_from_float16(value); }
  static uint16_t narrow(float value) { return float16_from_float(value); }
};

template <class T>
T add(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
  return a + b;
}

template <class T>
T multiply(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(std::make_unsigned_t<T>(a) * std::make_unsigned_t<T>(b));
  return a * b;
}

// The later value where it is better or NaN, so that NaN propagates and the first of equal values stays. Two selections in a
// row, not one condition, because short-circuit evaluation would keep the loop scalar.
template <class T>
T better(bool second_is_better, T first, T second) {
  const T chosen = second_is_better ? second : first;
  if constexpr (std::is_floating_point_v<T>) return std::isnan(second) ? second : chosen;
  return chosen;
}

template <ReduceOp op, class T>
T merge(T first, T second) {
  if constexpr (op == ReduceOp::min) return better(second < first, first, second);
  if constexpr (op == ReduceOp::max) return better(second > first, first, second);
  return add(first, second);
}

template <class T>
T load(const std::byte* bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

// One source as it enters the tree.
template <class Element, ReduceOp op>
struct Leaf {
  const std::byte* bytes;
  typename Element::Wide factor;

  typename Element::Wide operator[](size_t i) const {
    const auto value = Element::widen(load<typename Element::Stored>(bytes, i));
    if constexpr (op == ReduceOp::premul_sum) return multiply(value, factor);
    return value;
  }
};

// Where the root of the tree goes.
template <class Element, ReduceOp op>
struct Root {
  std::byte* bytes;
  typename Element::Wide source_count;

  void set(size_t i, typename Element::Wide value) const {
    if constexpr (op == ReduceOp::avg) value /= source_count;
    const typename Element::Stored stored = Element::narrow(value);
    std::memcpy(bytes + i * sizeof(stored), &stored, sizeof(stored));
  }
};

// Where an inner node of the tree goes.
template <class Wide>
struct Partial {
  Wide* values;

  Wide operator[](size_t i) const { return values[i]; }
  void set(size_t i, Wide value) const { values[i] = value; }
};

// The two loops. Iterations are independent: a target is one of its inputs exactly or overlaps none of them. They are not
// inlined, because the recursion over the tree would hold many copies of them.
template <class Input, class Target>
[[gnu::noinline]] void copy_each(Input input, Target target, size_t count) {
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) target.set(i, input[i]);
}

template <ReduceOp op, class First, class Second, class Target>
[[gnu::noinline]] void merge_each(First first, Second second, Target target, size_t count) {
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) target.set(i, merge<op>(first[i], second[i]));
}

int largest_power_of_two_below(int n) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(n)) / 2); }

// `count` <= kBlock elements of all sources, from element `begin` on.
template <class Element, ReduceOp op>
struct Block {
  using Wide = typename Element::Wide;
  static constexpr size_t kBlock = kBlockBytes / sizeof(Wide);

  const void* const* sources;
  const Scalar* scalars;
  size_t begin;
  size_t count;

  Leaf<Element, op> leaf(int source) const {
    const auto* bytes = static_cast<const std::byte*>(sources[source]) + begin * sizeof(typename Element::Stored);
    if constexpr (op != ReduceOp::premul_sum) return {bytes, Wide{}};
    return {bytes,
            Element::widen(load<typename Element::Stored>(reinterpret_cast<const std::byte*>(&scalars[source].bits), 0))};
  }

  // Leaves the tree over sources first .. first + n - 1 in partials[0 .. kBlock), and uses the blocks behind it.
  void reduce_into(Wide* partials, int first, int n) const {
    const Partial<Wide> target{partials};
    if (n == 1) return copy_each(leaf(first), target, count);
    if (n == 2) return merge_each<op>(leaf(first), leaf(first + 1), target, count);
    const int left = largest_power_of_two_below(n);
    reduce_into(partials, first, left);
    reduce_into(partials + kBlock, first + left, n - left);
    merge_each<op>(target, Partial<Wide>{partials + kBlock}, target, count);
  }
};

template <class Element, ReduceOp op>
void reduce_by_blocks(std::byte* out, const void* const* sources, int source_count, size_t count, const Scalar* scalars) {
  using Wide = typename Element::Wide;
  constexpr size_t kBlock = Block<Element, op>::kBlock;
  alignas(64) Wide partials[kLevels * kBlock];
  const int left = largest_power_of_two_below(source_count);
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const Block<Element, op> block{sources, scalars, begin, std::min(kBlock, count - begin)};
    block.reduce_into(partials, 0, left);
    block.reduce_into(partials + kBlock, left, source_count - left);
    const Root<Element, op> root{out + begin * sizeof(typename Element::Stored), static_cast<Wide>(source_count)};
    merge_each<op>(Partial<Wide>{partials}, Partial<Wide>{partials + kBlock}, root, block.count);
  }
}

template <class Element, ReduceOp op>
void reduce(void* out, const void* const* sources, int source_count, size_t count, const Scalar* scalars) {
  check(source_count >= 1 && source_count <= kMaxSources, "a reduction has between 1 and 65536 sources");
  auto* bytes = static_cast<std::byte*>(out);
  if (source_count > 2) return reduce_by_blocks<Element, op>(bytes, sources, source_count, count, scalars);

  const Block<Element, op> whole{sources, scalars, 0, count};
  const Root<Element, op> root{bytes, static_cast<typename Element::Wide>(source_count)};
  if (source_count == 1) return copy_each(whole.leaf(0), root, count);
  merge_each<op>(whole.leaf(0), whole.leaf(1), root, count);
}

template <class Element>
ReduceKernel kernel_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return reduce<Element, ReduceOp::sum>;
    case ReduceOp::max:
      return reduce<Element, ReduceOp::max>;
    case ReduceOp::min:
      return reduce<Element, ReduceOp::min>;
    case ReduceOp::avg:
      return reduce<Element, ReduceOp::avg>;
    case ReduceOp::premul_sum:
      return reduce<Element, ReduceOp::premul_sum>;
    case ReduceOp::prod:
      return nullptr;
  }
  return nullptr;
}

}  // namespace

ReduceKernel reduce_kernel(fcclDataType_t dtype, ReduceOp op) {
  switch (dtype) {
    case fcclInt32:
      return kernel_of<Plain<int32_t>>(op);
    case fcclInt64:
      return kernel_of<Plain<int64_t>>(op);
    case fcclFloat16:
      return kernel_of<Float16>(op);
    case fcclFloat32:
      return kernel_of<Plain<float>>(op);
    case fcclFloat64:
      return kernel_of<Plain<double>>(op);
    case fcclBfloat16:
      return kernel_of<Bfloat16>(op);
    default:
      return nullptr;
  }
}

}  // namespace fccl
