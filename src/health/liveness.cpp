// Knows which ranks have died or left: those of this host by their processes, the others by the reports of their leaders.
#include "health/liveness.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <utility>

#include "health/failure_board.h"
#include "health/known_calls.h"
#include "health/peers.h"
#include "host_link/link_messages.h"
#include "segment/rank_state.h"

namespace fccl::core {
namespace {

// Number of processes that one poll asks the kernel about.
constexpr size_t kWatchedAtOnce = 64;

}  // namespace

std::atomic<PeerStatus>& Liveness::reported(int rank) const { return peers_.segment().peer_status(rank); }

PeerStatus Liveness::status_of(int rank) const {
  if (!peers_.is_here(rank)) return reported(rank).load(std::memory_order_acquire);
  // The order matters: the rank may leave and exit in between.
  const bool alive = peers_[rank].watch->alive();
  if (has_left(rank)) return PeerStatus::left;
  return alive ? PeerStatus::present : PeerStatus::died;
}

bool Liveness::has_left(int rank) const {
  if (!peers_.is_here(rank)) return status_of(rank) == PeerStatus::left;
  return peers_.state_of(rank).left.load(std::memory_order_acquire) != 0;
}

std::optional<int> Liveness::left_before(uint64_t call) const {
  for (int rank = 0; rank < peers_.count(); ++rank)
    if (!peers_.is_here(rank) && has_left(rank) &&
        peers_.segment().last_call_beyond(rank).load(std::memory_order_relaxed) < call)
      return rank;
  return std::nullopt;
}

std::vector<int> Liveness::dead_ranks() const {
  std::vector<int> dead;
  for (int rank = 0; rank < peers_.count(); ++rank)
    if (has_died(rank)) dead.push_back(rank);
  return dead;
}

int Liveness::reporter_of(int rank) const { return peers_.segment().reporter_beyond(rank).load(std::memory_order_relaxed); }

void Liveness::leave() {
  peers_.own_state().left.store(1, std::memory_order_release);
  failures_.wake_leader();
}

void Liveness::look_for_deaths() {
  look_for_remote_deaths();
  for (size_t first = 0; first < peers_.locals().size(); first += kWatchedAtOnce) look_at_watches(first);
}

void Liveness::look_for_some_deaths() {
  look_for_remote_deaths();
  look_at_watches(next_watch_);
  next_watch_ = next_turn(next_watch_);
}

void Liveness::look_for_remote_deaths() {
  if (const auto dead = find_remote_dead(); dead && !failures_.has_failed())
    (void)failures_.raise({MessageKind::died, fmt::format("{} died", peers_.describe(*dead))});
}

void Liveness::look_at_watches(size_t first) {
  for (const int rank : dead_among(first))
    if (!failures_.has_failed())
      (void)failures_.raise({MessageKind::died, fmt::format("{} died; its last call was {}", peers_.describe(rank),
                                                            calls_.describe_last_call_of(rank))});
}

size_t Liveness::next_turn(size_t first) const {
  return first + kWatchedAtOnce < peers_.locals().size() ? first + kWatchedAtOnce : 0;
}

// Returns the dead of this host from place `first` on, by one poll.
std::vector<int> Liveness::dead_among(size_t first) const {
  const std::span locals(peers_.locals());
  const auto some = locals.subspan(first, std::min(kWatchedAtOnce, locals.size() - first));
  std::array<pollfd, kWatchedAtOnce> ended{};
  for (size_t i = 0; i < some.size(); ++i) ended[i] = {peers_[some[i]].watch->descriptor(), POLLIN, 0};
  std::vector<int> dead;
  if (::poll(ended.data(), some.size(), 0) == 0) return dead;
  std::ranges::copy_if(some, std::back_inserter(dead), [this](int rank) { return has_died(rank); });
  return dead;
}

std::optional<int> Liveness::find_remote_dead() const {
  for (int rank = 0; rank < peers_.count(); ++rank)
    if (!peers_.is_here(rank) && has_died(rank)) return rank;
  return std::nullopt;
}

std::optional<int> Liveness::search(size_t& next) const {
  const size_t first = std::exchange(next, next_turn(next));
  if (const auto dead = dead_among(first); !dead.empty()) return dead.front();
  return find_remote_dead();
}

std::vector<Departure> Liveness::local_departures() const {
  std::vector<Departure> departures;
  for (const int rank : peers_.locals())
    if (const PeerStatus how = status_of(rank); how != PeerStatus::present)
      departures.push_back({rank, how, calls_.last_number_of(rank)});
  return departures;
}

std::vector<std::shared_ptr<ProcessWatch>> Liveness::local_watches() const {
  std::vector<std::shared_ptr<ProcessWatch>> watches;
  for (const int rank : peers_.locals())
    if (rank != peers_.rank()) watches.push_back(peers_[rank].watch);
  return watches;
}

void Liveness::hear_of_departure(const Departure& departure) {
  peers_.segment().last_call_beyond(departure.rank).store(departure.last_call, std::memory_order_relaxed);
  reported(departure.rank).store(departure.how, std::memory_order_release);
}

void Liveness::hear_of_end(int leader, LinkEnd how) {
  PeerStatus present = PeerStatus::present;
  reported(leader).compare_exchange_strong(present, how == LinkEnd::goodbye ? PeerStatus::left : PeerStatus::died);
  hear_no_more(leader, leader);
}

// Leaving in good order is not a failure: the ranks of which that leader told then become unheard, not out of reach. The link's
// thread alone takes news.
void Liveness::hear_no_more(int leader, int through) {
  const bool has_left = reported(through).load(std::memory_order_acquire) == PeerStatus::left;
  for (int rank = 0; rank < peers_.count(); ++rank) {
    if (!peers_.share_a_host(rank, leader) || reported(rank).load(std::memory_order_relaxed) != PeerStatus::present) continue;
    peers_.segment().reporter_beyond(rank).store(through, std::memory_order_relaxed);
    reported(rank).store(has_left ? PeerStatus::unheard : PeerStatus::out_of_reach, std::memory_order_release);
  }
}

}  // namespace fccl::core
