// Reach: the memory of its peers that a rank can read beside their slots, on one lane.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "host/route.h"

namespace fccl::core {

class MappedPeers;
class PeerMemory;

// Used by the thread that runs the lane's current phase.
struct Reach {
  Attaching attaching;
  // Set after a call through slots in which this rank waited long for others; and whether slices are long for that reason,
  // which is equal on all ranks.
  bool waits_long = false;
  bool long_slices = false;
  Offers last_offers;                        // the last ones of all ranks; equal on all ranks
  std::shared_ptr<const PeerMemory> memory;  // null if the lane has never attached
  // Null if the lane maps no arenas; equal on all ranks in that.
  std::unique_ptr<MappedPeers> mapped_peers;
  // The ranks' buffers in a mapped call; null for a buffer outside the arenas.
  std::vector<const std::byte*> inputs, outputs;

  explicit Reach(int ranks);
  ~Reach();
  Reach(const Reach&) = delete;
  Reach& operator=(const Reach&) = delete;

  // Lets calls read peers' private memory from here on, if their longest block has at least `least_block` bytes.
  void attach(std::shared_ptr<const PeerMemory> peer_memory, size_t least_block);
};

}  // namespace fccl::core
