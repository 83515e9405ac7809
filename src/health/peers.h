// Peers: a communicator's ranks, and the memory in which the ranks of this host show their state.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bootstrap/member.h"
#include "os/process_watch.h"
#include "segment/segment.h"

namespace fccl::core {

// A rank of the communicator, and the watch on its process; for a rank of another host there are only its leader's reports.
struct Peer {
  Member member;
  std::shared_ptr<ProcessWatch> watch;  // null: the rank is on another host
  int local = -1;                       // its place among the ranks of this host
};

// A Control owns it. Immutable but for the memory; any thread may call, also after a failure.
class Peers {
 public:
  // `peers`: all ranks in their order. `rank`: this rank, which is one of them.
  Peers(int rank, std::vector<Peer> peers, std::shared_ptr<Segment> segment);

  int rank() const { return rank_; }
  int count() const { return static_cast<int>(peers_.size()); }
  const Peer& operator[](int rank) const { return peers_[rank]; }
  // Lists the ranks of this host.
  const std::vector<int>& locals() const { return locals_; }
  bool is_here(int rank) const { return peers_[rank].local >= 0; }
  bool share_a_host(int rank, int other) const { return peers_[rank].member.host == peers_[other].member.host; }
  // Returns the first rank of a rank's host.
  int leader_of(int rank) const;
  // Returns "rank 3 (pid 4711 on box)".
  std::string describe(int rank) const { return fccl::core::describe(peers_[rank].member); }

  Segment& segment() const { return *segment_; }
  RankState& own_state() const { return state_of(rank_); }
  // Take a rank of this host.
  RankState& state_of(int rank) const { return segment_->state(peers_[rank].local); }
  const LaneBoard& board_of(int rank, LaneId lane) const { return segment_->board(peers_[rank].local, lane); }

 private:
  int rank_;
  std::vector<Peer> peers_;
  std::vector<int> locals_;
  std::shared_ptr<Segment> segment_;
};

}  // namespace fccl::core
