// PeerStatus: what became of a rank, as far as this host knows.
#pragma once

#include <cstdint>

namespace fccl::core {

// No more news comes of a rank of another host that is `out_of_reach` or `unheard`, because the rank that would report it has
// died or left. Leaders send the numbers of the first three to each other.
enum class PeerStatus : uint8_t { present, left, died, out_of_reach, unheard };

}  // namespace fccl::core
