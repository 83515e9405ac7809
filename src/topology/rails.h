// Rails: which NICs serve which rank, and which of them two ranks use with each other.
#pragma once

#include <vector>

#include "topology/topology.h"

namespace fccl {

// For each local rank of a host its NICs, as numbers in the host's list, nearest first.
//   - Every NIC serves a rank, and every rank is served, if there are both.
//   - As many NICs as ranks or more: a NIC serves one rank only, and the ranks' numbers of NICs differ by at most one.
//   - Fewer NICs than ranks: a rank has one NIC, and the NICs' numbers of ranks differ by at most one.
//   - Within that, near NICs are given out before far ones.
std::vector<std::vector<int>> nics_of_ranks(const Host& host);

// A NIC of either rank, as numbers in their hosts' lists.
struct Rail {
  int nic = 0, peer_nic = 0;

  bool operator==(const Rail&) const = default;
};

// The rails of a communicator. A value; the same on all ranks that have the same topology.
class Rails {
 public:
  explicit Rails(const Topology& topology);

  const std::vector<int>& nics_of(int rank) const;
  // What two ranks of different hosts use with each other: as many rails as the one with fewer NICs has. NICs that have the
  // same number on both hosts are joined first, since networks may be as separate as the NICs; the others in turn, beginning at
  // the peer's local rank, so that the peers of a rank spread over its NICs. Both ranks find the same rails in the same order.
  std::vector<Rail> between(int rank, int peer) const;
  // What any two ranks of different hosts have at least; 0 if some host has no NIC.
  int least() const;

 private:
  struct Seat {
    int host = 0, local_rank = 0;
    std::vector<int> nics;
  };
  const Seat& seat(int rank) const;

  std::vector<Seat> seats_;  // by rank
};

}  // namespace fccl
