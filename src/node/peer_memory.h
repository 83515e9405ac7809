// PeerMemory: reads the private memory of the other ranks of a host, where the kernel allows it (cross-memory attach).
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "node/segment.h"
#include "system/memory.h"

namespace fccl {

// One rank's way to its peers' memory, and the mark by which they know its own. Made before the ranks first meet, and outlives
// every call in which a peer may read; owned by a lane and used by the thread that runs the lane's phase.
class PeerMemory {
 public:
  // `pids` by rank.
  PeerMemory(std::shared_ptr<Segment> segment, int rank, std::vector<int> pids);
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  // Tries to read every peer; once, when every rank has made its own. Error: fcclSystemError, naming the first that it cannot.
  Result<void> reach_all();
  bool reaches_all() const { return reaches_all_; }
  // Copies `bytes` bytes at `source` in the memory of a peer; only if reaches_all(). False: some could not be read, since the
  // kernel forbids it, the peer's process has ended, or the memory is not there or of a kind that the kernel does not lend.
  bool read(int peer, void* target, const void* source, size_t bytes) const;

 private:
  std::shared_ptr<Segment> segment_;
  int rank_;
  std::vector<int> pids_;
  std::unique_ptr<uint64_t> mark_;  // of this process, where peers read it
  std::vector<MemoryMark> marks_;  // by rank; read with the bytes, so that they are not those of a process with a dead one's id
  bool reaches_all_ = false;
};

// Makes the pages of what a peer is about to read come on this thread. A reader would wait for them inside the kernel, beyond
// deadline and abort, if they are in a file of a server that does not answer or served by a thread of this process that does
// not run; and if this process died then, it would read zeros.
void bring_in(const std::byte* begin, size_t bytes);

}  // namespace fccl
