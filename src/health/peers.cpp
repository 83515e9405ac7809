// Finds the ranks of this host and the leaders of the others.
#include "health/peers.h"

#include <utility>

namespace fccl::core {

Peers::Peers(int rank, std::vector<Peer> peers, std::shared_ptr<Segment> segment)
    : rank_(rank), peers_(std::move(peers)), segment_(std::move(segment)) {
  for (const Peer& peer : peers_)
    if (peer.local >= 0) locals_.push_back(peer.member.rank);
}

int Peers::leader_of(int rank) const {
  int first = 0;
  while (!share_a_host(first, rank)) ++first;
  return first;
}

}  // namespace fccl::core
