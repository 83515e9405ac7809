// PeerArena: another process's arena, mapped to be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "arena/reservation.h"
#include "base/result.h"
#include "system/forks.h"

namespace fccl {

// One mapping per arena and process, shared by all who hold it and unmapped with the last of them. Immutable; any thread may
// read. The pages stay when the peer's process ends, and the file cannot shrink, so reading never fails. Not for a fork of the
// process that mapped it, which does not inherit it.
class PeerArena {
 public:
  // Maps the arena of process `pid`, or gives the mapping that there is, this process's own among them. Nothing that the peer
  // wrote is believed: it must be a sealed file of that size with that id. Error: fcclSystemError.
  static Result<std::shared_ptr<const PeerArena>> map(int pid, const ArenaName& name);

  ~PeerArena();
  PeerArena(const PeerArena&) = delete;
  PeerArena& operator=(const PeerArena&) = delete;

  // Where `bytes` bytes at an offset of the peer's lie here; null if they do not lie in the arena.
  const std::byte* at(uint64_t offset, uint64_t bytes) const {
    return offset <= bytes_ && bytes <= bytes_ - offset ? begin_ + offset : nullptr;
  }

 private:
  PeerArena(const std::byte* begin, uint64_t bytes, bool is_own) : begin_(begin), bytes_(bytes), is_own_(is_own) {}

  const std::byte* begin_;
  uint64_t bytes_;
  bool is_own_;
  unsigned forks_ = forks();  // of the process that mapped it
};

}  // namespace fccl
