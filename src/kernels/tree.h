// Implements the order of a reduction given in reduce.h: a binary tree over the sources, chunk by chunk. Compiled once per
// instruction set.

// Highway's guard: open once per instruction set.
#if defined(FCCL_KERNELS_TREE_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FCCL_KERNELS_TREE_H
#undef FCCL_KERNELS_TREE_H
#else
#define FCCL_KERNELS_TREE_H
#endif

#include <algorithm>

#include "base/check.h"
#include "kernels/elements.h"
#include "kernels/float_environment.h"
#include "kernels/reduce.h"

HWY_BEFORE_NAMESPACE();
namespace fccl::core::HWY_NAMESPACE {

constexpr int kLevels = 16;
constexpr int kMaxSources = 1 << kLevels;
constexpr uint64_t kMaxDivisor = 1 << 24;

// The arguments of a kernel's call.
struct Work {
  std::byte* out;
  const void* const* sources;
  int source_count;
  size_t count;
  const Scalar* scalars;
  int divisor;  // used by avg alone
};

// Selects the second value if it is better or NaN. So NaN propagates, and the first of equal values stays.
template <ReduceOp op, class T>
Vector<T> better(Vector<T> first, Vector<T> second) {
  if constexpr (std::is_integral_v<T>)
    return op == ReduceOp::min ? hn::Min(first, second) : hn::Max(first, second);
  else {
    const auto second_is_better = op == ReduceOp::min ? hn::Lt(second, first) : hn::Lt(first, second);
    return hn::IfThenElse(hn::Or(second_is_better, hn::IsNaN(second)), second, first);
  }
}

template <ReduceOp op, class T>
Vector<T> merge(Vector<T> first, Vector<T> second) {
  if constexpr (op == ReduceOp::min || op == ReduceOp::max)
    return better<op, T>(first, second);
  else if constexpr (op == ReduceOp::prod)
    return multiply<T>(first, second);
  else if constexpr (op == ReduceOp::band)
    return hn::And(first, second);
  else if constexpr (op == ReduceOp::bor)
    return hn::Or(first, second);
  else if constexpr (op == ReduceOp::bxor)
    return hn::Xor(first, second);
  else
    return hn::Add(first, second);
}

// A kernel: one operator on sources of one element type, with results of the same or another type.
template <ReduceOp op, class In, class Out = In>
struct Kernel {
  using Wide = typename In::Wide;
  static_assert(std::is_same_v<Wide, typename Out::Wide>);
  using Chunk = Pair<Vector<Wide>>;
  static constexpr size_t kChunk = 2 * hn::MaxLanes(Lanes<Wide>());
  static constexpr size_t kInBytes = sizeof(typename In::Stored), kOutBytes = sizeof(typename Out::Stored);

  // The part of every source that is reduced at a time: a whole chunk where it lies, or a copy of the rest after the last whole
  // chunk.
  struct Place {
    size_t begin;
    size_t count = kChunk;
    std::byte* copy = nullptr;
  };

  static Chunk merge(Chunk a, Chunk b) {
    return {HWY_NAMESPACE::merge<op, Wide>(a.first, b.first), HWY_NAMESPACE::merge<op, Wide>(a.second, b.second)};
  }

  // Loads a source as a leaf of the tree; premul_sum multiplies it by its factor.
  static HWY_INLINE Chunk leaf(const Work& work, int source, Place place) {
    const std::byte* at = static_cast<const std::byte*>(work.sources[source]) + place.begin * kInBytes;
    if (place.copy != nullptr) at = static_cast<const std::byte*>(std::memcpy(place.copy, at, place.count * kInBytes));
    const Chunk chunk = In::load(at);
    if constexpr (op != ReduceOp::premul_sum) return chunk;
    const auto factor = In::factor(work.scalars[source].bits);
    return {multiply<Wide>(chunk.first, factor), multiply<Wide>(chunk.second, factor)};
  }

  // Reduces `sources` sources from `first` on, a power of two.
  template <int sources>
  static HWY_INLINE Chunk subtree(const Work& work, int first, Place place) {
    if constexpr (sources == 1)
      return leaf(work, first, place);
    else
      return merge(subtree<sources / 2>(work, first, place), subtree<sources / 2>(work, first + sources / 2, place));
  }

  // Reduces all sources. A complete subtree waits in `waiting` for its right sibling of the same size; the bits of `fours` tell
  // when that is complete. At the end the remaining subtrees are merged from the right.
  static Chunk tree(const Work& work, Place place) {
    Chunk waiting[kLevels];
    int levels = 0;
    int source = 0;
    for (; source + 4 <= work.source_count; source += 4) {
      Chunk complete = subtree<4>(work, source, place);
#pragma GCC unroll 1
      for (int fours = source / 4; fours & 1; fours >>= 1) complete = merge(waiting[--levels], complete);
      waiting[levels++] = complete;
    }
    if (work.source_count & 2) {
      waiting[levels++] = subtree<2>(work, source, place);
      source += 2;
    }
    if (work.source_count & 1) waiting[levels++] = leaf(work, source, place);
    Chunk root = waiting[--levels];
    while (levels > 0) root = merge(waiting[--levels], root);
    return root;
  }

  static void store(Chunk root, int divisor, std::byte* at) {
    if constexpr (op == ReduceOp::avg) root = {divide<Wide>(root.first, divisor), divide<Wide>(root.second, divisor)};
    Out::store(root, at);
  }

  // Reduces every whole chunk; returns the number of elements done.
  template <int sources>
  static size_t reduce_chunks(const Work& work) {
    const size_t whole = work.count / kChunk * kChunk;
    for (size_t begin = 0; begin < whole; begin += kChunk)
      store(subtree<sources>(work, 0, {begin}), work.divisor, work.out + begin * kOutBytes);
    return whole;
  }

  // Not inlined, so that its arithmetic stays within its caller's FloatEnvironment.
  static HWY_NOINLINE void reduce(const Work& work) {
    size_t begin = 0;
    if constexpr (kInBytes != kOutBytes)
      if (work.source_count == 1) begin = reduce_chunks<1>(work);
    if (work.source_count == 2) begin = reduce_chunks<2>(work);
    if (work.source_count == 4) begin = reduce_chunks<4>(work);
    for (; begin + kChunk <= work.count; begin += kChunk)
      store(tree(work, {begin}), work.divisor, work.out + begin * kOutBytes);
    if (begin == work.count) return;
    HWY_ALIGN std::byte rest[kChunk * std::max(kInBytes, kOutBytes)] = {};
    store(tree(work, {begin, work.count - begin, rest}), work.divisor, rest);
    std::memcpy(work.out + begin * kOutBytes, rest, (work.count - begin) * kOutBytes);
  }

  static void run_with(const Work& work) {
    check(work.source_count >= 1 && work.source_count <= kMaxSources, "a reduction has between 1 and 65536 sources");
    if constexpr (std::is_floating_point_v<Wide>) {
      const FloatEnvironment environment;
      reduce(work);
    } else {
      reduce(work);
    }
  }

  static void run(void* out, const void* const* sources, int source_count, size_t count, const Scalar* scalars) {
    run_with({static_cast<std::byte*>(out), sources, source_count, count, scalars, source_count});
  }

  // Divides an average by scalars[0] instead of the number of sources.
  static void run_with_divisor(void* out, const void* const* sources, int source_count, size_t count, const Scalar* scalars) {
    const uint64_t divisor = scalars[0].bits;
    check(divisor >= 1 && divisor <= kMaxDivisor, "an average is of between 1 and 16777216 ranks");
    run_with({static_cast<std::byte*>(out), sources, source_count, count, scalars, static_cast<int>(divisor)});
  }
};

}  // namespace fccl::core::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
