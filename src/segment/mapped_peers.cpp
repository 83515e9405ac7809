// Maps an arena when its rank first offers memory in it.
#include "segment/mapped_peers.h"

#include <fmt/format.h>

#include <utility>

#include "os/log.h"
#include "segment/rank_state.h"

namespace fccl::core {

MappedPeers::MappedPeers(std::shared_ptr<Segment> segment, int rank, std::vector<int> pids)
    : segment_(std::move(segment)), rank_(rank), pids_(std::move(pids)), peers_(pids_.size()) {}

void MappedPeers::publish_arena() {
  const Reservation* own = own_reservation();
  if (own == nullptr) return;
  segment_->state(rank_).set_arena(name_of(*own));
  is_published_ = true;
}

void MappedPeers::meet(int peer) {
  peers_[peer].is_known = true;
  if (peer == rank_) return;
  auto mapped = PeerArena::map(pids_[peer], segment_->state(peer).get_arena());
  if (mapped) {
    peers_[peer].arena = std::move(*mapped);
    return;
  }
  reaches_all_ = false;
  log(LogLevel::info,
      fmt::format("{}; rank {} of this host and its peers copy through slots instead", mapped.error().message, rank_));
}

}  // namespace fccl::core
