// PeerMemory: reads the private memory of the other ranks of a host, where the kernel allows it (cross-memory attach).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "node/segment.h"

namespace fccl {

// One rank's way to its peers' memory, and the mark by which they know its own. Made before the ranks first meet, reached
// after; owned by a lane and used by the thread that runs the lane's phase. It outlives every call in which a peer may read.
class PeerMemory {
 public:
  // `pids` by rank.
  PeerMemory(std::shared_ptr<Segment> segment, int rank, std::vector<int> pids);
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  // Whether this rank can read every peer. Once, when every rank has made its own.
  bool reach_all();
  // Copies `bytes` bytes at `source` in the memory of a peer. False: some could not be read, since the kernel forbids it, the
  // peer's process has ended, or the memory is not there or of a kind that the kernel does not lend.
  bool read(int peer, void* target, const void* source, size_t bytes) const;

 private:
  std::shared_ptr<Segment> segment_;
  int rank_;
  std::vector<int> pids_;
  uint64_t mark_;            // this rank's, which lies here
  std::vector<Mark> marks_;  // by rank; read with the bytes, so that they are not those of a process with a dead one's id
};

}  // namespace fccl
