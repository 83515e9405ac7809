// Reservation: the sealed file behind an arena, and its mapping in the process that owns it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "os/descriptor.h"
#include "os/memory.h"

namespace fccl::core {

// 128 random bits. A peer compares them to verify that it opened the announced arena.
using ArenaId = std::array<uint64_t, 2>;

// A process's description of its arena for its peers, which open the file as /proc/PID/fd/NUMBER.
struct ArenaName {
  int descriptor = -1;
  ArenaId id{};
  uint64_t bytes = 0;

  bool operator==(const ArenaName&) const = default;
};

// One per process that allocates. Never destroyed, since any thread may be reading from it. A forked child inherits its
// parent's reservation as a private copy: it can read what is there, and its writes stay its own. A child that allocates makes
// a reservation of its own. The first page holds the id. Any thread may read it without a lock.
struct Reservation {
  std::byte* begin;
  size_t bytes;
  Descriptor file;  // closed in the child
  ArenaId id;
  bool is_inherited;    // set by the fork handler alone, while the child has one thread
  Reservation* before;  // the parent's reservation, in a fork

  bool holds(const void* memory) const {
    const auto* byte = static_cast<const std::byte*>(memory);
    return byte >= begin && byte < begin + bytes;
  }
};

// The newest reservation of this process or of a process that it was forked from; null before the first.
extern std::atomic<Reservation*> newest_reservation;

// Returns this process's own reservation; null before its first allocation.
inline const Reservation* own_reservation() {
  const Reservation* newest = newest_reservation.load(std::memory_order_acquire);
  return newest != nullptr && !newest->is_inherited ? newest : nullptr;
}

// The offset of memory that peers cannot map.
inline constexpr uint64_t kNotInArena = UINT64_MAX;

// Returns where `bytes` bytes at `memory` lie in this process's arena, or kNotInArena if any of them lies outside. An empty
// range counts as inside as soon as there is an arena.
inline uint64_t offset_in_arena(const void* memory, size_t bytes) {
  const Reservation* own = own_reservation();
  if (own == nullptr) return kNotInArena;
  if (bytes == 0) return kPageBytes;
  if (!own->holds(memory)) return kNotInArena;
  const size_t offset = static_cast<const std::byte*>(memory) - own->begin;
  return offset >= kPageBytes && bytes <= own->bytes - offset ? offset : kNotInArena;
}

// True if the memory belongs to an arena that a fork inherited from its parent.
bool is_inherited(const void* memory);

// Reserves at most `bytes` bytes of addresses, a multiple of pages, and uses one page of memory. Publishes the reservation as
// the newest. Error: fcclSystemError.
Result<const Reservation*> reserve_arena(size_t bytes);

inline ArenaName name_of(const Reservation& reservation) { return {reservation.file.get(), reservation.id, reservation.bytes}; }

}  // namespace fccl::core
