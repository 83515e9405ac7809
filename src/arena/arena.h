// Arena: memory for buffers that the other ranks of this host map once and then read in place.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>

#include "arena/extents.h"
#include "base/result.h"

namespace fccl::core {

struct Reservation;

// The present and past use of an arena, in bytes.
struct ArenaUsage {
  size_t bytes = 0;     // allocated
  size_t most = 0;      // the most that were allocated at one time
  size_t filled = 0;    // memory that it occupies, including kept memory of freed allocations
  size_t reserved = 0;  // addresses
};

// One per process that allocates (process_arena); any thread may call. The first allocation reserves addresses for the rest of
// the process's life. Each page is allocated when a thread first writes to it, on that thread's NUMA node. A failed call
// changes nothing.
class Arena {
 public:
  // Allocates at a multiple of 64 bytes, or of a page if `bytes` is a page or more. Reused memory is not cleared. Fails early,
  // so that no later page fault can fail. Errors: fcclSystemError if the reserved addresses or the memory available to this
  // process do not suffice; fcclInvalidUsage for a wrong setting.
  Result<void*> allocate(size_t bytes);
  // Frees an allocation. Ignores null, and memory that a fork inherited from its parent. Error: fcclInvalidArgument for any
  // other pointer.
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
  size_t granted_ = 0;  // the machine's memory was checked for this many allocated bytes
  size_t most_ = 0;
};

Arena& process_arena();

}  // namespace fccl::core
