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

// Says which part a call of a timed loop uses. The first calls rotate over as much memory as the largest size takes, so that
// caches are not measured. The last calls have parts of their own, which no other call of the loop touches: the contents
// afterwards are the results of exactly these calls.
struct Parts {
  std::size_t rotating = 1;
  std::size_t reserved = 0;
  std::size_t calls = 1;

  std::size_t part_of(std::size_t call) const {
    const std::size_t others = calls - reserved;
    return call < others ? call % rotating : rotating + (call - others);
  }
};

// One thread owns and uses it; it does not own the memory.
class CallMemory {
 public:
  // At most this many calls at the end of a timed loop have parts of their own.
  static constexpr std::size_t kMostReserved = 2;
  // Bytes after the buffers of the first part that may be poisoned, to show writes beyond their end.
  static constexpr std::size_t kGuardBytes = 4096;

  // Holds two calls of `max_bytes`; all buffers begin `shift` bytes after an aligned address. Without `rotates` all calls
  // without a part of their own use the first one.
  static Result<CallMemory> make(Memory& memory, std::size_t max_bytes, std::size_t shift, bool rotates = true);

  // Divides the memory for `calls` calls of `bytes` bytes; with `reserve`, the last calls have parts of their own.
  Parts parts(std::size_t bytes, std::size_t calls, bool reserve) const;
  // Returns where a call of `bytes` bytes in its larger buffer reads and writes.
  Buffers buffers(const Layout& layout, std::size_t element_bytes, std::size_t bytes, bool in_place, std::size_t part) const;

 private:
  CallMemory(std::size_t max_bytes, bool rotates, std::byte* send, std::byte* recv)
      : max_bytes_(max_bytes), rotates_(rotates), send_(send), recv_(recv) {}

  std::size_t max_bytes_;
  bool rotates_;
  std::byte* send_;
  std::byte* recv_;
};

// Writes the same contents again, like a producer that leaves its data in the caches of its core.
void rewrite(std::byte* at, std::size_t bytes);

// Returns the first byte after the memory that a call may write; with `in_place`, after the memory that it reads, too.
std::byte* end_of(const Buffers& buffers, const Layout& layout, std::size_t element_bytes, bool in_place);

}  // namespace fccl::perf
