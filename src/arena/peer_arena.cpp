// Opens a peer's arena through /proc, verifies it, and keeps each mapping by its id.
#include "arena/peer_arena.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "os/descriptor.h"
#include "os/per_process.h"

namespace fccl::core {
namespace {

// All mappings of this process.
struct PeerArenas {
  std::mutex mutex;
  std::map<ArenaId, std::weak_ptr<const PeerArena>> of;
};

constinit PerProcess<PeerArenas> peer_arenas;

tl::unexpected<Error> mapping_failure(int pid, const std::string& observed) {
  return fail(fcclSystemError, fmt::format("mapping the arena of the process with pid {} failed: {}", pid, observed));
}

// Opens the file without blocking, since a peer may name any file.
Result<Descriptor> open_arena(int pid, const ArenaName& name) {
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, name.descriptor);
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return mapping_failure(pid, fmt::format("{}: {}", path, std::strerror(errno)));
  struct stat seen{};
  const int seals = fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return mapping_failure(pid, path + " is not sealed memory");
  if (fstat(file.get(), &seen) != 0 || static_cast<uint64_t>(seen.st_size) != name.bytes || name.bytes < kPageBytes)
    return mapping_failure(pid, fmt::format("{} has {} bytes, not {}", path, seen.st_size, name.bytes));
  return file;
}

}  // namespace

Result<std::shared_ptr<const PeerArena>> PeerArena::map(int pid, const ArenaName& name) {
  using Mapped = std::shared_ptr<const PeerArena>;
  if (const Reservation* own = own_reservation(); own != nullptr && pid == getpid() && name_of(*own) == name)
    return Mapped(new PeerArena(own->begin, own->bytes, true));
  PeerArenas& all = peer_arenas.get();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.of, [](const auto& entry) { return entry.second.expired(); });
  if (const auto known = all.of.find(name.id); known != all.of.end())
    if (auto mapped = known->second.lock(); mapped && mapped->bytes_ == name.bytes) return mapped;
  FCCL_TRY_ASSIGN(const auto file, open_arena(pid, name));
  void* memory = mmap(nullptr, name.bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, file.get(), 0);
  if (memory == MAP_FAILED) return mapping_failure(pid, std::strerror(errno));
  Mapped mapped(new PeerArena(static_cast<const std::byte*>(memory), name.bytes, false));
  if (std::memcmp(memory, name.id.data(), sizeof name.id) != 0) return mapping_failure(pid, "it is another one");
  madvise(memory, name.bytes, MADV_DONTFORK);
  madvise(memory, name.bytes, MADV_DONTDUMP);
  all.of[name.id] = mapped;
  return mapped;
}

// Leaves the addresses alone in a fork, which may have mapped something else there.
PeerArena::~PeerArena() {
  if (!is_own_ && forks_ == forks()) munmap(const_cast<std::byte*>(begin_), bytes_);
}

}  // namespace fccl::core
