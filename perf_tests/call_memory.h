// The memory that one rank's calls read and write, cut into parts so that successive calls use successive ones.
#pragma once

#include <cstddef>

#include "collective.h"
#include "memory.h"

namespace fccl::perf {

struct Buffers {
  std::byte* send;
  std::byte* recv;
};

// Which part a call of a timed loop uses. The first calls rotate over as much memory as the largest size takes, so that caches
// are not measured. The last ones have parts of their own, which no other call of the loop touches: what is found there
// afterwards is the result of just these calls.
struct Parts {
  std::size_t rotating = 1;
  std::size_t reserved = 0;
  std::size_t calls = 1;

  std::size_t part_of(std::size_t call) const {
    const std::size_t others = calls - reserved;
    return call < others ? call % rotating : rotating + (call - others);
  }
};

// Owned and used by one thread; the memory is not its own.
class CallMemory {
 public:
  // At most this many calls at the end of a timed loop have parts of their own.
  static constexpr std::size_t kMostReserved = 2;
  // So much lies behind the buffers of the first part and may be poisoned, which is to show what writes beyond its end.
  static constexpr std::size_t kGuardBytes = 4096;

  // Holds two calls of `max_bytes`; all buffers begin `shift` bytes behind an aligned address. Without `rotates` all calls
  // that have no part of their own use the first one.
  static Result<CallMemory> make(Memory& memory, std::size_t max_bytes, std::size_t shift, bool rotates = true);

  // For `calls` calls of `bytes` bytes; with `reserve`, the last of them have parts of their own.
  Parts parts(std::size_t bytes, std::size_t calls, bool reserve) const;
  // Where a call of `bytes` bytes in its larger buffer reads and writes.
  Buffers buffers(const Layout& layout, std::size_t element_bytes, std::size_t bytes, bool in_place, std::size_t part) const;

 private:
  CallMemory(std::size_t max_bytes, bool rotates, std::byte* send, std::byte* recv)
      : max_bytes_(max_bytes), rotates_(rotates), send_(send), recv_(recv) {}

  std::size_t max_bytes_;
  bool rotates_;
  std::byte* send_;
  std::byte* recv_;
};

// Writes again what is there, as a producer does who leaves data in the caches of its core.
void rewrite(std::byte* at, std::size_t bytes);

// The first byte behind what a call may write; `in_place`, behind what it reads, too.
std::byte* end_of(const Buffers& buffers, const Layout& layout, std::size_t element_bytes, bool in_place);

}  // namespace fccl::perf
