// Arena: memory for buffers that the other ranks of this host map once and then read in place.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>

#include "arena/extents.h"
#include "base/result.h"

namespace fccl {

struct Reservation;

// What an arena holds and has held.
struct ArenaUsage {
  size_t bytes = 0;     // allocated
  size_t most = 0;      // that ever were
  size_t filled = 0;    // memory that it takes, with what is kept of freed allocations
  size_t reserved = 0;  // addresses
};

// One per process that allocates (process_arena); any thread may call. Its addresses are reserved at the first allocation and
// kept until the process ends; pages come when they are first written, on the node of the thread that writes. A failed call
// changes nothing.
class Arena {
 public:
  // At a multiple of 64, and of a page if it is a page or more. Reused memory is not cleared. Error: fcclSystemError where it
  // fits neither the addresses nor what this process may still take of the machine's memory, so that no fault is refused later;
  // fcclInvalidUsage for a setting.
  Result<void*> allocate(size_t bytes);
  // Nothing happens for null, and for memory of a process that this one was forked from. Error: fcclInvalidArgument for what
  // is no allocation.
  Result<void> free(void* memory);
  ArenaUsage usage();

 private:
  Result<void> reserve();
  Result<void> grant(size_t bytes);
  Result<void*> place(size_t bytes);
  size_t filled() const;
  void give_up(const ByteRange& free);
  void give_up_all();

  std::mutex mutex_;
  const Reservation* reservation_ = nullptr;
  std::optional<Extents> extents_;
  size_t granted_ = 0;  // allocated bytes up to which the machine's memory was looked at
  size_t most_ = 0;
};

Arena& process_arena();

}  // namespace fccl
