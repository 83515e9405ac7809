// Reservation: the sealed file behind an arena, mapped where its process sees it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "system/descriptor.h"
#include "system/memory.h"

namespace fccl {

// 128 bits by which a peer knows that the file it has opened is the arena that it was told of.
using ArenaId = std::array<uint64_t, 2>;

// What a process tells its peers of its arena. They find the file as /proc/PID/fd/NUMBER.
struct ArenaName {
  int descriptor = -1;
  ArenaId id{};
  uint64_t bytes = 0;

  bool operator==(const ArenaName&) const = default;
};

// Made once per process that allocates, and never unmade, since any thread may be reading from it; a forked child inherits its
// parent's and, if it allocates, makes one of its own. In the child the parent's is a private copy: what is there can be read,
// and what the child writes stays the child's. The first page carries the id. Read without a lock by any thread.
struct Reservation {
  std::byte* begin;
  size_t bytes;
  Descriptor file;  // closed in the child
  ArenaId id;
  bool is_inherited;    // changed by the fork's handler alone, when the child has one thread
  Reservation* before;  // of the process that this one was forked from

  bool holds(const void* memory) const {
    const auto* byte = static_cast<const std::byte*>(memory);
    return byte >= begin && byte < begin + bytes;
  }
};

// The newest of this process or of those that it was forked from; null before the first.
extern std::atomic<Reservation*> newest_reservation;

// This process's own; null before its first allocation.
inline const Reservation* own_reservation() {
  const Reservation* newest = newest_reservation.load(std::memory_order_acquire);
  return newest != nullptr && !newest->is_inherited ? newest : nullptr;
}

// Of memory that peers cannot map.
inline constexpr uint64_t kNotInArena = UINT64_MAX;

// Where `bytes` bytes at `memory` lie in this process's arena, if all of them do. No bytes lie in any arena there is.
inline uint64_t offset_in_arena(const void* memory, size_t bytes) {
  const Reservation* own = own_reservation();
  if (own == nullptr) return kNotInArena;
  if (bytes == 0) return kPageBytes;
  if (!own->holds(memory)) return kNotInArena;
  const size_t offset = static_cast<const std::byte*>(memory) - own->begin;
  return offset >= kPageBytes && bytes <= own->bytes - offset ? offset : kNotInArena;
}

// Whether it is memory of an arena of a process that this one was forked from.
bool is_inherited(const void* memory);

// Reserves at most `bytes` bytes of addresses, a multiple of pages, and takes no memory but a page. Publishes it as the newest.
// Error: fcclSystemError.
Result<const Reservation*> reserve_arena(size_t bytes);

inline ArenaName name_of(const Reservation& reservation) { return {reservation.file.get(), reservation.id, reservation.bytes}; }

}  // namespace fccl
