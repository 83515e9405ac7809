// Makes a sparse memfd, sealed to its size, and turns it into a private copy in a fork.
#include "arena/reservation.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/check.h"

namespace fccl::core {

constinit std::atomic<Reservation*> newest_reservation{nullptr};

namespace {

// The arena takes one part in this many of the addresses that RLIMIT_AS leaves. The peers' arenas and the application need the
// rest.
constexpr size_t kShareOfAddresses = 4;

size_t within_limits(size_t bytes) {
  bytes = std::min(bytes, longest_file() / kPageBytes * kPageBytes);
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return bytes;
  size_t used = 0;
  std::ifstream("/proc/self/statm") >> used;
  const size_t left = limit.rlim_cur / kPageBytes - std::min<size_t>(limit.rlim_cur / kPageBytes, used);
  return std::min(bytes, left / kShareOfAddresses * kPageBytes);
}

tl::unexpected<Error> reservation_failure(const char* attempt, size_t bytes) {
  return fail(
      fcclSystemError,
      fmt::format("{} an arena of {} bytes of addresses failed: {}; raise the limits on addresses (ulimit -v) and on the "
                  "length of files (ulimit -f), or lower FCCL_ARENA_BYTES",
                  attempt, bytes, std::strerror(errno)));
}

// Runs in a child that has one thread, before fork() returns, so it makes system calls only and takes no lock. If the private
// copy fails, the child loses the addresses: it must never write into its parent's memory.
void make_private_in_child() {
  for (Reservation* one = newest_reservation.load(std::memory_order_relaxed); one != nullptr; one = one->before) {
    if (one->is_inherited) continue;
    const void* copy =
        mmap(one->begin, one->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, one->file.get(), 0);
    if (copy == MAP_FAILED) munmap(one->begin, one->bytes);
    one->file.close();
    one->is_inherited = true;
  }
}

// Registers when the library is loaded. At first use, another thread could fork in the middle of it.
[[maybe_unused]] const bool kHandlesForks = [] {
  const int registered = pthread_atfork(nullptr, nullptr, make_private_in_child);
  check(registered == 0, "a fork handler can be registered");
  return true;
}();

void advise(std::byte* begin, size_t bytes) {
  // A refusal changes the cost of a core dump or of a page fault, never a result.
  madvise(begin, bytes, MADV_DONTDUMP);
  madvise(begin, bytes, MADV_HUGEPAGE);
}

ArenaId random_id() {
  ArenaId id{};
  check(getrandom(id.data(), sizeof id, 0) == sizeof id, "the kernel gives a few random bytes");
  return id;
}

}  // namespace

bool is_inherited(const void* memory) {
  for (const Reservation* one = newest_reservation.load(std::memory_order_acquire); one != nullptr; one = one->before)
    if (one->is_inherited && one->holds(memory)) return true;
  return false;
}

Result<const Reservation*> reserve_arena(size_t most) {
  const size_t bytes = within_limits(most);
  errno = ENOMEM;
  if (bytes < 2 * kPageBytes) return reservation_failure("mapping", most);
  const ArenaId id = random_id();
  Descriptor file(memfd_create("fccl-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return reservation_failure("opening", bytes);
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return reservation_failure("sizing", bytes);
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return reservation_failure("sealing", bytes);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(), 0);
  if (memory == MAP_FAILED) return reservation_failure("mapping", bytes);
  auto* begin = static_cast<std::byte*>(memory);
  advise(begin, bytes);
  std::memcpy(begin, id.data(), sizeof id);
  Reservation* before = newest_reservation.load(std::memory_order_acquire);
  auto* made = new Reservation{begin, bytes, std::move(file), id, false, before};
  newest_reservation.store(made, std::memory_order_release);
  return made;
}

}  // namespace fccl::core
