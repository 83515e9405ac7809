// MappedPeers: the arenas of the host's other ranks, as one lane reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "arena/peer_arena.h"
#include "segment/segment.h"

namespace fccl::core {

// Owned by a lane; used by the thread that runs the lane's phase. A rank maps a peer's arena when the peer first offers memory
// in it; all ranks see that offer in the same call. Failing to map is not an error: the rank's later offers say that it cannot.
class MappedPeers {
 public:
  // `pids` is indexed by rank.
  MappedPeers(std::shared_ptr<Segment> segment, int rank, std::vector<int> pids);

  // Announces this process's arena to the peers once it exists. Call it before each entry.
  void publish() {
    if (!is_published_) [[unlikely]]
      publish_arena();
  }
  // True if the rank was met. `peer` may be this rank, whose arena needs no mapping.
  bool knows(int peer) const { return peers_[peer].is_known; }
  void meet(int peer);
  // Returns false once mapping a peer's arena has failed.
  bool reaches_all() const { return reaches_all_; }
  // Returns the address of a known rank's arena memory in this process; null if it lies outside the arena.
  const std::byte* at(int peer, uint64_t offset, uint64_t bytes) const {
    const auto& arena = peers_[peer].arena;
    return arena ? arena->at(offset, bytes) : nullptr;
  }

 private:
  struct PeerOfLane {
    std::shared_ptr<const PeerArena> arena;
    bool is_known = false;
  };

  void publish_arena();

  std::shared_ptr<Segment> segment_;
  int rank_;
  std::vector<int> pids_;
  std::vector<PeerOfLane> peers_;
  bool is_published_ = false;
  bool reaches_all_ = true;
};

}  // namespace fccl::core
