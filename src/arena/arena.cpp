// Assigns addresses by best fit and refuses an allocation that the machine's memory cannot back.
#include "arena/arena.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "arena/reservation.h"
#include "base/rounding.h"
#include "os/memory.h"
#include "os/per_process.h"
#include "settings/settings.h"

namespace fccl::core {
namespace {

constexpr size_t kLine = 64;
// The arena keeps up to this much freed memory for later allocations, since faulting a page in again costs 0.25 us.
constexpr size_t kKept = size_t{256} << 20;
// The arena checks the machine's memory once per this many bytes, not for each small allocation.
constexpr size_t kGrant = size_t{1} << 20;

constinit PerProcess<Arena> arenas;

size_t memory_of_machine() {
  const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && bytes > 0 ? static_cast<size_t>(pages) * static_cast<size_t>(bytes) : size_t{1} << 30;
}

tl::unexpected<Error> allocation_failure(size_t bytes, const std::string& observed, const char* advice) {
  return fail(MessageKind::arena_is_full,
              fmt::format("allocating {} bytes of memory that peers map failed: {}; {}", bytes, observed, advice));
}

}  // namespace

Arena& process_arena() { return arenas.get(); }

Result<void*> Arena::allocate(size_t bytes) {
  if (bytes == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  FCCL_TRY(reserve());
  if (bytes > reservation_->bytes)
    return allocation_failure(bytes, fmt::format("the arena of this process has {} bytes of addresses", reservation_->bytes),
                              "allocate less, or raise FCCL_ARENA_BYTES");
  const size_t taken = rounded_up(bytes, bytes < kPageBytes ? kLine : kPageBytes);
  FCCL_TRY(grant(taken));
  return place(taken);
}

Result<void> Arena::free(void* memory) {
  if (memory == nullptr || is_inherited(memory)) return {};
  const std::lock_guard lock(mutex_);
  std::optional<ByteRange> free;
  if (extents_ && reservation_->holds(memory))
    free = extents_->give_back(static_cast<size_t>(static_cast<std::byte*>(memory) - reservation_->begin));
  if (!free)
    return fail(
        fcclInvalidArgument,
        fmt::format("ptr {} does not come from fcclMemAlloc, or was freed before: free each of its pointers once", memory));
  if (filled() > extents_->taken() + kKept) give_up(*free);
  granted_ = std::min(granted_, std::max(extents_->taken(), filled()));
  return {};
}

ArenaUsage Arena::usage() {
  const std::lock_guard lock(mutex_);
  if (!extents_) return {};
  return {extents_->taken(), most_, filled(), reservation_->bytes};
}

Result<void> Arena::reserve() {
  if (extents_) return {};
  FCCL_TRY_ASSIGN(const auto settings, read_settings());
  const size_t wanted = settings.arena_bytes != 0 ? settings.arena_bytes : memory_of_machine();
  FCCL_TRY_ASSIGN(auto reserved, reserve_arena(std::max(rounded_up(wanted, kPageBytes), 2 * kPageBytes)));
  reservation_ = reserved;
  extents_.emplace(kPageBytes, reservation_->bytes);
  return {};
}

// Refuses before pages are missing. A later shortage would end processes: the kernel kills one, or the writer gets SIGBUS.
Result<void> Arena::grant(size_t bytes) {
  const size_t wanted = extents_->taken() + bytes;
  if (wanted <= granted_) return {};
  const auto missing = [&](size_t in_all) { return in_all - std::min(in_all, filled()); };
  AvailableMemory available = available_memory();
  if (missing(wanted) > available.bytes) {
    give_up_all();
    available = available_memory();
  }
  if (missing(wanted) > available.bytes)
    return allocation_failure(bytes,
                              fmt::format("with {} bytes that are allocated and {} that are filled, only {} bytes are "
                                          "available, as {} says",
                                          extents_->taken(), filled(), available.bytes, available.limited_by),
                              "free memory, or raise the container's memory limit");
  const size_t with_spare = rounded_up(wanted, kGrant);
  granted_ = missing(with_spare) <= available.bytes ? with_spare : wanted;
  return {};
}

Result<void*> Arena::place(size_t bytes) {
  const auto offset = extents_->take(bytes, bytes < kPageBytes ? kLine : kPageBytes);
  if (!offset)
    return allocation_failure(bytes,
                              fmt::format("the arena has {} bytes of addresses, of which {} are allocated; its longest free "
                                          "part has {}",
                                          reservation_->bytes, extents_->taken(), extents_->longest_free()),
                              "free allocations, or raise FCCL_ARENA_BYTES");
  most_ = std::max(most_, extents_->taken());
  return reservation_->begin + *offset;
}

// Returns how much memory the file occupies now.
size_t Arena::filled() const {
  struct stat file{};
  constexpr size_t kBlock = 512;  // the unit of st_blocks on every file system
  return fstat(reservation_->file.get(), &file) == 0 ? static_cast<size_t>(file.st_blocks) * kBlock : 0;
}

// Releases whole pages only. A file system that cannot punch holes keeps the pages.
void Arena::give_up(const ByteRange& free) {
  const size_t begin = rounded_up(free.offset, kPageBytes);
  const size_t end = (free.offset + free.bytes) / kPageBytes * kPageBytes;
  if (begin < end)
    fallocate(reservation_->file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
              static_cast<off_t>(end - begin));
}

void Arena::give_up_all() {
  for (const auto& [offset, bytes] : extents_->free_extents()) give_up({offset, bytes});
}

}  // namespace fccl::core
