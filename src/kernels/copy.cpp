// Copying past the caches, compiled once per instruction set.
#include "kernels/copy.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/copy.cpp"
#include <hwy/foreach_target.h>
// Behind it.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace fccl::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kLine = 64;
constexpr size_t kAhead = 16 * kLine;

// Whole lines of the target are streamed; what comes before and behind them is copied. `slot` may be null.
template <bool with_slot>
void stream(uint8_t* target, uint8_t* slot, const uint8_t* source, size_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  constexpr size_t kVector = hn::MaxLanes(d);
  const size_t head = -reinterpret_cast<uintptr_t>(target) % kLine;
  if (bytes < head + kLine) {
    copy_bytes(target, source, bytes);
    if constexpr (with_slot) copy_bytes(slot, source, bytes);
    return;
  }
  const auto copy_part = [&](size_t begin, size_t length) {
    std::memcpy(target + begin, source + begin, length);
    if constexpr (with_slot) std::memcpy(slot + begin, source + begin, length);
  };
  copy_part(0, head);
  size_t i = head;
  for (; i + kLine <= bytes; i += kLine) {
    hwy::Prefetch(source + i + kAhead);
    for (size_t k = 0; k < kLine; k += kVector) {
      const auto part = hn::LoadU(d, source + i + k);
      if constexpr (with_slot) hn::StoreU(part, d, slot + i + k);
      hn::Stream(part, d, target + i + k);
    }
  }
  // Streamed stores are not ordered by the release that tells others of them.
  hwy::FlushStream();
  copy_part(i, bytes - i);
}

void stream_here(void* target, void* slot, const void* source, size_t bytes) {
  auto* to = static_cast<uint8_t*>(target);
  auto* from = static_cast<const uint8_t*>(source);
  if (slot == nullptr)
    stream<false>(to, nullptr, from, bytes);
  else
    stream<true>(to, static_cast<uint8_t*>(slot), from, bytes);
}

}  // namespace fccl::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fccl {

HWY_EXPORT(stream_here);

void stream_bytes(void* target, const void* source, size_t bytes) {
  if (bytes != 0 && target != source) HWY_DYNAMIC_DISPATCH(stream_here)(target, nullptr, source, bytes);
}

void stream_bytes_and_copy(void* target, void* slot, const void* source, size_t bytes) {
  if (target == source) return copy_bytes(slot, source, bytes);
  if (bytes != 0) HWY_DYNAMIC_DISPATCH(stream_here)(target, slot, source, bytes);
}

}  // namespace fccl
#endif
