// Rails: the NICs that serve each rank, and the pairs of NICs that two ranks use with each other.
#pragma once

#include <vector>

#include "topology/topology.h"

namespace fccl::core {

// Returns for each local rank of a host its NICs, as numbers in the host's list, nearest first.
//   - Every NIC serves a rank, and every rank is served, if the host has both.
//   - As many NICs as ranks or more: a NIC serves one rank only, and ranks have equal numbers of NICs, plus or minus one.
//   - Fewer NICs than ranks: a rank has one NIC, and NICs serve equal numbers of ranks, plus or minus one.
//   - Within these quotas, near NICs are assigned before far ones.
std::vector<std::vector<int>> nics_of_ranks(const Host& host);

// A pair of NICs, one of each rank, as numbers in their hosts' lists.
struct Rail {
  int nic = 0, peer_nic = 0;

  bool operator==(const Rail&) const = default;
};

// The rails of a communicator. A value; the same on all ranks that have the same topology.
class Rails {
 public:
  explicit Rails(const Topology& topology);

  const std::vector<int>& nics_of(int rank) const;
  // Returns the rails between two ranks of different hosts: as many as the rank with fewer NICs has. NICs with the same number
  // on both hosts are paired first, since each number may have a network of its own. The remaining NICs are paired in turn,
  // beginning at the peer's local rank, so that a rank's peers spread over its NICs. Both ranks compute the same rails in the
  // same order.
  std::vector<Rail> between(int rank, int peer) const;
  // Returns the smallest number of rails between any two ranks of different hosts; 0 if some host has no NIC.
  int least() const;

 private:
  struct Seat {
    int host = 0, local_rank = 0;
    std::vector<int> nics;
  };
  const Seat& seat(int rank) const;

  std::vector<Seat> seats_;  // by rank
};

}  // namespace fccl::core
