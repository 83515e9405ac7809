// Cuts memory into parts.
#include "call_memory.h"

#include <algorithm>
#include <memory>

namespace fccl::perf {
namespace {

constexpr std::size_t kAlignment = 4096;

// The first aligned byte of `memory`.
std::byte* aligned(std::vector<std::byte>& memory) {
  void* start = memory.data();
  std::size_t space = memory.size();
  return static_cast<std::byte*>(std::align(kAlignment, 1, start, space));
}

}  // namespace

CallMemory::CallMemory(std::size_t max_bytes, std::size_t shift)
    : max_bytes_(max_bytes),
      shift_(shift),
      send_(2 * max_bytes + kAlignment + shift + 1),
      recv_(2 * max_bytes + kAlignment + shift + 1) {}

Parts CallMemory::parts(std::size_t bytes, std::size_t calls, bool reserve) const {
  const std::size_t stride = std::max<std::size_t>(bytes, 1);
  const std::size_t rotating = std::max<std::size_t>(max_bytes_ / stride, 1);
  return {.rotating = rotating, .reserved = reserve ? std::min({rotating, calls, kMostReserved}) : 0, .calls = calls};
}

Buffers CallMemory::buffers(const Layout& layout, std::size_t element_bytes, std::size_t bytes, bool in_place,
                            std::size_t part) {
  const std::size_t offset = shift_ + part * std::max<std::size_t>(bytes, 1);
  std::byte* recv = aligned(recv_) + offset;
  if (!in_place) return {aligned(send_) + offset, recv};
  return {recv + layout.in_place_send * element_bytes, recv + layout.in_place_recv * element_bytes};
}

}  // namespace fccl::perf
