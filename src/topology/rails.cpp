// Gives NICs to ranks from near to far, under equal quotas.
#include "topology/rails.h"

#include <algorithm>

#include "base/check.h"
#include "base/rounding.h"

namespace fccl::core {
namespace {

constexpr Distance kDistances[] = {Distance::same_switch, Distance::same_root, Distance::same_numa, Distance::same_host};

// The most NICs that a rank may have, and the most ranks that a NIC may serve.
struct Quota {
  size_t nics = 1, ranks = 1;
};

// Assigns the NICs of one host. Distances form a tree, so assigning all near NICs before any farther one minimizes the sum of
// distances.
class Assignment {
 public:
  explicit Assignment(const Host& host) : distances_(host.ranks.size()), given_(host.ranks.size()), load_(host.nics.size()) {
    for (size_t rank = 0; rank < host.ranks.size(); ++rank) {
      const Place place = place_of(host, host.ranks[rank]);
      for (const Nic& nic : host.nics) distances_[rank].push_back(distance(place, nic.place));
    }
  }

  // Ranks take turns, one NIC each. So no rank gets a second NIC while another rank could still get its first one at that
  // distance.
  void give_out(const Quota& quota) {
    for (const Distance reach : kDistances)
      for (bool given = true; given;) {
        given = false;
        for (size_t rank = 0; rank < given_.size(); ++rank) given |= give_one(rank, reach, quota);
      }
  }

  // Near NICs were assigned first; NICs at one distance were assigned in the order of the host's list.
  std::vector<std::vector<int>> nearest_first() && { return std::move(given_); }

 private:
  bool give_one(size_t rank, Distance reach, const Quota& quota) {
    std::vector<int>& mine = given_[rank];
    if (mine.size() >= quota.nics) return false;
    for (size_t nic = 0; nic < load_.size(); ++nic) {
      if (distances_[rank][nic] > reach || load_[nic] >= quota.ranks) continue;
      if (std::find(mine.begin(), mine.end(), static_cast<int>(nic)) != mine.end()) continue;
      mine.push_back(static_cast<int>(nic));
      ++load_[nic];
      return true;
    }
    return false;
  }

  std::vector<std::vector<Distance>> distances_;  // by rank and NIC
  std::vector<std::vector<int>> given_;           // by rank
  std::vector<size_t> load_;                      // by NIC: the number of ranks it serves
};

// Removes from both lists every NIC that both contain, and returns these in ascending order.
std::vector<int> take_shared(std::vector<int>& a, std::vector<int>& b) {
  std::vector<int> shared;
  for (const int nic : a)
    if (std::find(b.begin(), b.end(), nic) != b.end()) shared.push_back(nic);
  for (const int nic : shared) {
    std::erase(a, nic);
    std::erase(b, nic);
  }
  std::sort(shared.begin(), shared.end());
  return shared;
}

}  // namespace

std::vector<std::vector<int>> nics_of_ranks(const Host& host) {
  const size_t nics = host.nics.size(), ranks = host.ranks.size();
  if (nics == 0 || ranks == 0) return std::vector<std::vector<int>>(ranks);
  Assignment assignment(host);
  // First every rank gets an equal share, then the remainder is assigned.
  assignment.give_out({std::max<size_t>(1, nics / ranks), std::max<size_t>(1, ranks / nics)});
  assignment.give_out({divided_up(nics, ranks), divided_up(ranks, nics)});
  return std::move(assignment).nearest_first();
}

Rails::Rails(const Topology& topology) : seats_(topology.ranks()) {
  for (size_t h = 0; h < topology.hosts().size(); ++h) {
    const Host& host = topology.hosts()[h];
    std::vector<std::vector<int>> nics = nics_of_ranks(host);
    for (size_t i = 0; i < host.ranks.size(); ++i)
      seats_[host.ranks[i].number] = {static_cast<int>(h), static_cast<int>(i), std::move(nics[i])};
  }
}

const Rails::Seat& Rails::seat(int rank) const {
  check(rank >= 0 && static_cast<size_t>(rank) < seats_.size(), "a rank is one of the topology's");
  return seats_[rank];
}

const std::vector<int>& Rails::nics_of(int rank) const { return seat(rank).nics; }

std::vector<Rail> Rails::between(int rank, int peer) const {
  const Seat &here = seat(rank), &there = seat(peer);
  check(here.host != there.host, "rails join ranks of different hosts");
  std::vector<int> ours = here.nics, theirs = there.nics;
  const size_t count = std::min(ours.size(), theirs.size());
  std::vector<Rail> rails;
  for (const int nic : take_shared(ours, theirs)) rails.push_back({nic, nic});
  for (size_t i = 0; rails.size() < count; ++i)
    rails.push_back({ours[(i + there.local_rank) % ours.size()], theirs[(i + here.local_rank) % theirs.size()]});
  return rails;
}

int Rails::least() const {
  size_t least = seats_.empty() ? 0 : seats_.front().nics.size();
  for (const Seat& each : seats_) least = std::min(least, each.nics.size());
  return static_cast<int>(least);
}

}  // namespace fccl::core
