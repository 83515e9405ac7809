// Cuts memory into parts.
#include "call_memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>

namespace fccl::perf {
namespace {

constexpr std::size_t kAlignment = 4096;

// Allocates room for two calls and a guard, `shift` bytes after an aligned address.
Result<std::byte*> allocate(Memory& memory, std::size_t max_bytes, std::size_t shift) {
  std::size_t space = 2 * max_bytes + kAlignment + shift + CallMemory::kGuardBytes;
  const auto made = memory.allocate(space);
  if (!made) return made.error();
  void* start = *made;
  return static_cast<std::byte*>(std::align(kAlignment, 1, start, space)) + shift;
}

}  // namespace

Result<CallMemory> CallMemory::make(Memory& memory, std::size_t max_bytes, std::size_t shift, bool rotates) {
  const auto send = allocate(memory, max_bytes, shift);
  if (!send) return send.error();
  const auto recv = allocate(memory, max_bytes, shift);
  if (!recv) return recv.error();
  return CallMemory(max_bytes, rotates, *send, *recv);
}

Parts CallMemory::parts(std::size_t bytes, std::size_t calls, bool reserve) const {
  const std::size_t stride = std::max<std::size_t>(bytes, 1);
  const std::size_t rotating = rotates_ ? std::max<std::size_t>(max_bytes_ / stride, 1) : 1;
  return {.rotating = rotating, .reserved = reserve ? std::min({rotating, calls, kMostReserved}) : 0, .calls = calls};
}

Buffers CallMemory::buffers(const Layout& layout, std::size_t element_bytes, std::size_t bytes, bool in_place,
                            std::size_t part) const {
  const std::size_t offset = part * std::max<std::size_t>(bytes, 1);
  std::byte* recv = recv_ + offset;
  if (!in_place) return {send_ + offset, recv};
  return {recv + layout.in_place_send * element_bytes, recv + layout.in_place_recv * element_bytes};
}

void rewrite(std::byte* at, std::size_t bytes) {
  std::array<std::byte, kAlignment> copy;
  for (std::size_t done = 0; done < bytes; done += copy.size()) {
    const std::size_t piece = std::min(copy.size(), bytes - done);
    std::memcpy(copy.data(), at + done, piece);
    // Without it the compiler sees that both copies together change nothing.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    std::memcpy(at + done, copy.data(), piece);
  }
}

std::byte* end_of(const Buffers& buffers, const Layout& layout, std::size_t element_bytes, bool in_place) {
  std::byte* end = buffers.recv + layout.recv_count * element_bytes;
  return in_place ? std::max(end, buffers.send + layout.send_count * element_bytes) : end;
}

}  // namespace fccl::perf
