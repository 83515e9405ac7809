// PeerMemory: reads the private memory of the host's other ranks, if the kernel allows it (cross-memory attach).
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "os/memory.h"
#include "segment/rank_state.h"
#include "segment/segment.h"

namespace fccl::core {

// One rank's access to its peers' memory, and the mark by which they recognise its own. Made before the ranks first meet.
// Outlives every call in which a peer may read. Owned by a lane; used by the thread that runs the lane's phase.
class PeerMemory {
 public:
  // `pids` is indexed by rank.
  PeerMemory(std::shared_ptr<Segment> segment, int rank, std::vector<int> pids);
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  // Tries to read from every peer. Call it once, after every rank has made its PeerMemory. Error: fcclSystemError with the
  // first peer that it cannot read.
  Result<void> reach_all();
  bool reaches_all() const { return reaches_all_; }
  // Copies `bytes` bytes at `source` in a peer's memory; requires reaches_all(). Returns false if some could not be read: the
  // kernel forbids it, the peer's process has ended, or the memory is not mapped or of a kind that the kernel cannot read.
  bool read(int peer, void* target, const void* source, size_t bytes) const;

 private:
  std::shared_ptr<Segment> segment_;
  int rank_;
  std::vector<int> pids_;
  std::unique_ptr<uint64_t> mark_;  // the mark of this process, which peers read
  std::vector<MemoryMark> marks_;   // by rank; each read checks it, since a new process may have a dead peer's pid
  bool reaches_all_ = false;
};

// Faults in pages on this thread, by a read of each. A rank does so with pages that a peer is about to read: the peer would
// fault them in inside the kernel, where neither its deadline nor an abort can end the wait; a file on a dead server or a
// stopped userfault thread would block it for ever. If this process died during the wait, the peer would read zeros.
void bring_in(const std::byte* begin, size_t bytes);

}  // namespace fccl::core
