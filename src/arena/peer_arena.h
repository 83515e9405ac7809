// PeerArena: a read-only mapping of another process's arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "arena/reservation.h"
#include "base/result.h"
#include "os/forks.h"

namespace fccl::core {

// There is one mapping per arena and process; its holders share it, and the last one unmaps it. Immutable; any thread may read.
// Reading never fails: the pages outlive the peer's process, and the file cannot shrink. A fork does not inherit the mapping
// and must not use it.
class PeerArena {
 public:
  // Maps the arena of process `pid`, or returns the existing mapping; this includes the process's own arena. Does not trust the
  // peer: the file must be sealed and have that size and that id. Error: fcclSystemError.
  static Result<std::shared_ptr<const PeerArena>> map(int pid, const ArenaName& name);

  ~PeerArena();
  PeerArena(const PeerArena&) = delete;
  PeerArena& operator=(const PeerArena&) = delete;

  // Returns where `bytes` bytes at an offset of the peer's arena lie here; null if they lie outside it.
  const std::byte* at(uint64_t offset, uint64_t bytes) const {
    return offset <= bytes_ && bytes <= bytes_ - offset ? begin_ + offset : nullptr;
  }

 private:
  PeerArena(const std::byte* begin, uint64_t bytes, bool is_own) : begin_(begin), bytes_(bytes), is_own_(is_own) {}

  const std::byte* begin_;
  uint64_t bytes_;
  bool is_own_;
  unsigned forks_ = forks();  // forks() when this process mapped it
};

}  // namespace fccl::core
