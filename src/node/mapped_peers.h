// MappedPeers: the arenas of the other ranks of a host, as one lane reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "arena/peer_arena.h"
#include "node/segment.h"

namespace fccl {

// A lane's; used by the thread that runs the lane's phase. A peer's arena is mapped when the peer first offers memory in it,
// which all ranks see in the same call. What cannot be mapped is no error: this rank says so in its offers from then on.
class MappedPeers {
 public:
  // `pids` by rank.
  MappedPeers(std::shared_ptr<Segment> segment, int rank, std::vector<int> pids);

  // Tells the peers of this process's arena, once there is one. Before each entry.
  void publish() {
    if (!is_published_) [[unlikely]]
      publish_arena();
  }
  // Of any rank, this one included, whose arena needs no mapping.
  bool knows(int peer) const { return peers_[peer].is_known; }
  void meet(int peer);
  // False once a peer's arena could not be mapped.
  bool reaches_all() const { return reaches_all_; }
  // Of a rank that is known: where memory of its arena lies here; null if it does not.
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

}  // namespace fccl
