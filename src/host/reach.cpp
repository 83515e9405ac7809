// Makes and ends a Reach where the types of its members are complete.
#include "host/reach.h"

#include <utility>

#include "segment/mapped_peers.h"
#include "segment/peer_memory.h"

namespace fccl::core {

Reach::Reach(int ranks) : inputs(static_cast<size_t>(ranks)), outputs(static_cast<size_t>(ranks)) {}

Reach::~Reach() = default;

void Reach::attach(std::shared_ptr<const PeerMemory> peer_memory, size_t least_block) {
  memory = std::move(peer_memory);
  attaching = {.is_open = true, .past_caches = attaching.past_caches, .least_block = least_block};
}

}  // namespace fccl::core
