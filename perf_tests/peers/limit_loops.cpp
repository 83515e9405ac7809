// Copies and sums, compiled once per instruction set.
#include "peers/limit_loops.h"

// The loops are compiled for the same processors as the library's.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#define HWY_BROKEN_EMU128 0

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "peers/limit_loops.cpp"
#include <hwy/foreach_target.h>
// These must follow foreach_target.h.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace fccl::perf::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kLine = 64;
constexpr size_t kPage = 4096;
constexpr size_t kAhead = 16 * kLine;

// The builtin of g++ prefetches for reading unless it compiles for a processor that is known to have this instruction.
inline void prefetch_to_write(const uint8_t* at) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*at));
#else
  __builtin_prefetch(at, 1);
#endif
}

template <bool streams, size_t bytes>
void copy_vectors(uint8_t* to, const uint8_t* from) {
  const hn::ScalableTag<uint8_t> d;
  for (size_t i = 0; i < bytes; i += hn::MaxLanes(d)) {
    const auto vector = hn::LoadU(d, from + i);
    if constexpr (streams)
      hn::Stream(vector, d, to + i);
    else
      hn::StoreU(vector, d, to + i);
  }
}

void copy_prefetched(uint8_t* to, const uint8_t* from, size_t bytes) {
  size_t i = 0;
  for (; i + kLine <= bytes; i += kLine) {
    hwy::Prefetch(from + i + kAhead);
    prefetch_to_write(to + i + kAhead);
    copy_vectors<false, kLine>(to + i, from + i);
  }
  std::memcpy(to + i, from + i, bytes - i);
}

// Copies four pages side by side, so that several rows of memory are open at once.
void copy_streamed(uint8_t* to, const uint8_t* from, size_t bytes) {
  constexpr size_t kPages = 4;
  const size_t head = std::min(bytes, -reinterpret_cast<uintptr_t>(to) % kLine);
  std::memcpy(to, from, head);
  size_t begin = head;
  for (; begin + kPages * kPage <= bytes; begin += kPages * kPage) {
    for (size_t i = begin; i < begin + kPage; i += 2 * kLine) {
      for (size_t at = i; at < i + kPages * kPage; at += kPage) {
        hwy::Prefetch(from + at + kAhead / 2);
        copy_vectors<true, 2 * kLine>(to + at, from + at);
      }
    }
  }
  // The release that tells other ranks does not order streamed stores, so they are flushed here.
  hwy::FlushStream();
  std::memcpy(to + begin, from + begin, bytes - begin);
}

void copy_here(LoopKind kind, std::byte* to, const std::byte* from, size_t bytes) {
  auto* target = reinterpret_cast<uint8_t*>(to);
  const auto* source = reinterpret_cast<const uint8_t*>(from);
  if (kind == LoopKind::plain)
    std::memcpy(to, from, bytes);
  else if (kind == LoopKind::prefetched)
    copy_prefetched(target, source, bytes);
  else
    copy_streamed(target, source, bytes);
}

// Sums one vector at offset `at`. `fixed` is the number of ranks, or 0 if it is only known at run time.
template <int fixed, class D>
auto total(D d, const std::byte* const* from, int ranks, size_t at) {
  const auto load = [&](int rank) { return hn::LoadU(d, reinterpret_cast<const float*>(from[rank] + at)); };
  auto sum = load(0);
  for (int rank = 1; rank < (fixed > 0 ? fixed : ranks); ++rank) sum = hn::Add(sum, load(rank));
  return sum;
}

void sum_singly(std::byte* to, const std::byte* const* from, int ranks, size_t begin, size_t end) {
  for (size_t at = begin; at < end; at += sizeof(float)) {
    float sum;
    std::memcpy(&sum, from[0] + at, sizeof sum);
    for (int rank = 1; rank < ranks; ++rank) {
      float value;
      std::memcpy(&value, from[rank] + at, sizeof value);
      sum += value;
    }
    std::memcpy(to + at, &sum, sizeof sum);
  }
}

template <LoopKind kind, int fixed>
void sum_lines(std::byte* to, const std::byte* const* from, int ranks, size_t bytes) {
  const hn::ScalableTag<float> d;
  const auto miss = reinterpret_cast<uintptr_t>(to) % kLine;
  const bool streams = kind == LoopKind::streamed && miss % sizeof(float) == 0;
  size_t at = streams ? std::min(bytes, (kLine - miss) % kLine) : 0;
  sum_singly(to, from, ranks, 0, at);
  for (; at + kLine <= bytes; at += kLine) {
    if constexpr (kind != LoopKind::plain) {
      for (int rank = 0; rank < (fixed > 0 ? fixed : ranks); ++rank) hwy::Prefetch(from[rank] + at + kAhead);
    }
    if constexpr (kind == LoopKind::prefetched) prefetch_to_write(reinterpret_cast<const uint8_t*>(to) + at + kAhead);
    for (size_t i = at; i < at + kLine; i += hn::MaxLanes(d) * sizeof(float)) {
      const auto sum = total<fixed>(d, from, ranks, i);
      auto* result = reinterpret_cast<float*>(to + i);
      if (streams)
        hn::Stream(sum, d, result);
      else
        hn::StoreU(sum, d, result);
    }
  }
  if (streams) hwy::FlushStream();
  sum_singly(to, from, ranks, at, bytes);
}

template <LoopKind kind>
void sum_of(std::byte* to, const std::byte* const* from, int ranks, size_t bytes) {
  if (ranks == 2) return sum_lines<kind, 2>(to, from, ranks, bytes);
  if (ranks == 4) return sum_lines<kind, 4>(to, from, ranks, bytes);
  sum_lines<kind, 0>(to, from, ranks, bytes);
}

void sum_here(LoopKind kind, std::byte* to, const std::byte* const* from, int ranks, size_t bytes) {
  if (kind == LoopKind::plain)
    sum_of<LoopKind::plain>(to, from, ranks, bytes);
  else if (kind == LoopKind::prefetched)
    sum_of<LoopKind::prefetched>(to, from, ranks, bytes);
  else
    sum_of<LoopKind::streamed>(to, from, ranks, bytes);
}

}  // namespace fccl::perf::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fccl::perf {

HWY_EXPORT(copy_here);
HWY_EXPORT(sum_here);

void copy_as(LoopKind kind, std::byte* to, const std::byte* from, std::size_t bytes) {
  HWY_DYNAMIC_DISPATCH(copy_here)(kind, to, from, bytes);
}

void sum_as(LoopKind kind, std::byte* to, const std::byte* const* from, int ranks, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(sum_here)(kind, to, from, ranks, count * sizeof(float));
}

}  // namespace fccl::perf
#endif
