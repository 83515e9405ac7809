// Implements copying past the caches, compiled once per instruction set.
#include "kernels/copy.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/copy.cpp"
#include <hwy/foreach_target.h>
// These includes must follow foreach_target.h.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace fccl::core::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kLine = 64;
constexpr size_t kAhead = 16 * kLine;

// Streams whole lines of the target, and copies the bytes before and after them.
void stream_here(void* to, const void* from, size_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  constexpr size_t kVector = hn::MaxLanes(d);
  auto* target = static_cast<uint8_t*>(to);
  const auto* source = static_cast<const uint8_t*>(from);
  const size_t head = -reinterpret_cast<uintptr_t>(target) % kLine;
  if (bytes < head + kLine) return copy_bytes(target, source, bytes);
  std::memcpy(target, source, head);
  size_t i = head;
  for (; i + kLine <= bytes; i += kLine) {
    hwy::Prefetch(source + i + kAhead);
    for (size_t k = 0; k < kLine; k += kVector) hn::Stream(hn::LoadU(d, source + i + k), d, target + i + k);
  }
  // A release store does not order streamed stores before it.
  hwy::FlushStream();
  std::memcpy(target + i, source + i, bytes - i);
}

}  // namespace fccl::core::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fccl::core {

HWY_EXPORT(stream_here);

void stream_bytes(void* target, const void* source, size_t bytes) {
  if (bytes != 0 && target != source) HWY_DYNAMIC_DISPATCH(stream_here)(target, source, bytes);
}

}  // namespace fccl::core
#endif
