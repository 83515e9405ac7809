// The written order of a reduction, a binary tree over the sources, over chunks of elements; once per instruction set.

// Highway's guard: open once per instruction set.
#if defined(FCCL_KERNELS_TREE_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FCCL_KERNELS_TREE_H
#undef FCCL_KERNELS_TREE_H
#else
#define FCCL_KERNELS_TREE_H
#endif

#include "base/check.h"
#include "kernels/elements.h"
#include "kernels/float_environment.h"
#include "kernels/reduce.h"

HWY_BEFORE_NAMESPACE();
namespace fccl::HWY_NAMESPACE {

constexpr int kLevels = 16;
constexpr int kMaxSources = 1 << kLevels;

// What a kernel was called with.
struct Work {
  std::byte* out;
  const void* const* sources;
  int source_count;
  size_t count;
  const Scalar* scalars;
};

// The second value where it is better or NaN, so that NaN propagates and the first of equal values stays.
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
  else
    return hn::Add(first, second);
}

// A kernel: one operator on one type of elements.
template <class Element, ReduceOp op>
struct Kernel {
  using Wide = typename Element::Wide;
  using Chunk = Pair<Vector<Wide>>;
  static constexpr size_t kElementBytes = sizeof(typename Element::Stored);
  static constexpr size_t kChunkBytes = 2 * hn::MaxLanes(Lanes<Wide>()) * kElementBytes;

  // The part of every source that is reduced at a time: a chunk where it lies, or what is left behind the last whole chunk, by
  // way of a copy.
  struct Place {
    size_t begin;
    size_t bytes = kChunkBytes;
    std::byte* copy = nullptr;
  };

  static Chunk merge(Chunk a, Chunk b) {
    return {HWY_NAMESPACE::merge<op, Wide>(a.first, b.first), HWY_NAMESPACE::merge<op, Wide>(a.second, b.second)};
  }

  // A source as it enters the tree.
  static HWY_INLINE Chunk leaf(const Work& work, int source, Place place) {
    const std::byte* at = static_cast<const std::byte*>(work.sources[source]) + place.begin;
    if (place.copy != nullptr) at = static_cast<const std::byte*>(std::memcpy(place.copy, at, place.bytes));
    const Chunk chunk = Element::load(at);
    if constexpr (op != ReduceOp::premul_sum) return chunk;
    const auto factor = Element::factor(work.scalars[source].bits);
    return {multiply<Wide>(chunk.first, factor), multiply<Wide>(chunk.second, factor)};
  }

  // The tree over a power of two of sources.
  template <int sources>
  static HWY_INLINE Chunk subtree(const Work& work, int first, Place place) {
    if constexpr (sources == 1)
      return leaf(work, first, place);
    else
      return merge(subtree<sources / 2>(work, first, place), subtree<sources / 2>(work, first + sources / 2, place));
  }

  // The tree over all sources. A subtree waits for its right sibling, which is complete when as many fours of sources as a
  // power of two have come; what waits at the end is merged from the right.
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

  static void store(Chunk root, int source_count, std::byte* at) {
    if constexpr (op == ReduceOp::avg) root = {divide<Wide>(root.first, source_count), divide<Wide>(root.second, source_count)};
    Element::store(root, at);
  }

  // Every whole chunk of so many sources; the bytes of them.
  template <int sources>
  static size_t reduce_chunks(const Work& work) {
    const size_t whole = work.count * kElementBytes / kChunkBytes * kChunkBytes;
    for (size_t begin = 0; begin < whole; begin += kChunkBytes)
      store(subtree<sources>(work, 0, {begin}), work.source_count, work.out + begin);
    return whole;
  }

  // Not inlined, so that nothing of it leaves the floating-point environment that its caller makes.
  static HWY_NOINLINE void reduce(const Work& work) {
    const size_t total = work.count * kElementBytes;
    size_t begin = 0;
    if (work.source_count == 2) begin = reduce_chunks<2>(work);
    if (work.source_count == 4) begin = reduce_chunks<4>(work);
    for (; begin + kChunkBytes <= total; begin += kChunkBytes) store(tree(work, {begin}), work.source_count, work.out + begin);
    if (begin == total) return;
    HWY_ALIGN std::byte rest[kChunkBytes] = {};
    store(tree(work, {begin, total - begin, rest}), work.source_count, rest);
    std::memcpy(work.out + begin, rest, total - begin);
  }

  static void run(void* out, const void* const* sources, int source_count, size_t count, const Scalar* scalars) {
    check(source_count >= 1 && source_count <= kMaxSources, "a reduction has between 1 and 65536 sources");
    const Work work{static_cast<std::byte*>(out), sources, source_count, count, scalars};
    if constexpr (std::is_floating_point_v<Wide>) {
      const FloatEnvironment environment;
      reduce(work);
    } else {
      reduce(work);
    }
  }
};

}  // namespace fccl::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
