// Knows which ranks have died or left: those of this host by their processes, the others by the reports of their leaders.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <utility>

#include "operations/control.h"
#include "system/failure_timing.h"

namespace fccl::core {
namespace {

// Number of processes that one poll asks the kernel about.
constexpr size_t kWatchedAtOnce = 64;

// A wait that has lasted this long searches for deaths of ranks that it does not wait for.
constexpr std::chrono::milliseconds kSearchAfter{500};

}  // namespace

void Control::hear_of_departure(int rank, PeerStatus how) { segment_->peer_status(rank).store(how, std::memory_order_release); }

void Control::hear_of_end(int leader, LinkEnd how) {
  const auto set_status = [this](int rank, PeerStatus status) {
    PeerStatus present = PeerStatus::present;
    segment_->peer_status(rank).compare_exchange_strong(present, status);
  };
  if (how != LinkEnd::unheard) set_status(leader, how == LinkEnd::goodbye ? PeerStatus::left : PeerStatus::died);
  // Leaving in good order is not a failure: the ranks behind that leader then become unheard, not out of reach.
  const bool has_left = status_of(how == LinkEnd::unheard ? 0 : leader) == PeerStatus::left;
  for (int rank = 0; std::cmp_less(rank, peers_.size()); ++rank)
    if (share_a_host(rank, leader)) set_status(rank, has_left ? PeerStatus::unheard : PeerStatus::out_of_reach);
}

void Control::leave() {
  segment_->state(local()).left.store(1, std::memory_order_release);
  tell_leader();
}

std::vector<Departure> Control::local_departures() const {
  std::vector<Departure> departures;
  for (const int rank : locals_) {
    // The order matters: the rank may leave and exit in between.
    const bool alive = peers_[rank].watch->alive();
    if (has_left(rank))
      departures.push_back({rank, PeerStatus::left});
    else if (!alive)
      departures.push_back({rank, PeerStatus::died});
  }
  return departures;
}

std::vector<std::shared_ptr<ProcessWatch>> Control::local_watches() const {
  std::vector<std::shared_ptr<ProcessWatch>> watches;
  for (const int rank : locals_)
    if (rank != rank_) watches.push_back(peers_[rank].watch);
  return watches;
}

std::vector<LongWait> Control::local_waits() const {
  std::vector<LongWait> waits;
  for (const int rank : locals_) {
    LongWait wait{.rank = rank};
    for (const auto& awaited : state_of(rank).waits_long)
      if (wait.awaited < 0) wait.awaited = std::max(kNobody, static_cast<int>(awaited.load(std::memory_order_relaxed)));
    // A peer may have written anything, so its rank is checked.
    if (std::cmp_less(wait.awaited, peers_.size())) waits.push_back(wait);
  }
  return waits;
}

void Control::hear_of_wait(const LongWait& wait) {
  segment_->awaited_beyond(wait.rank).store(wait.awaited, std::memory_order_relaxed);
}

bool Control::has_died(int rank) const {
  if (!is_here(rank)) return status_of(rank) == PeerStatus::died;
  // The order matters: the rank may leave and exit in between.
  const bool alive = peers_[rank].watch->alive();
  return !alive && !has_left(rank);
}

std::vector<int> Control::dead_ranks() const {
  std::vector<int> dead;
  for (int rank = 0; std::cmp_less(rank, peers_.size()); ++rank)
    if (has_died(rank)) dead.push_back(rank);
  return dead;
}

void Control::look_for_deaths() {
  look_for_remote_deaths();
  for (size_t first = 0; first < locals_.size(); first += kWatchedAtOnce) look_at_watches(first);
}

void Control::look_for_some_deaths() {
  look_for_remote_deaths();
  look_at_watches(next_watch_);
  next_watch_ = next_turn(next_watch_);
}

void Control::look_for_remote_deaths() {
  if (const auto dead = find_remote_dead(); dead && !has_failed())
    (void)raise({fcclRemoteError, fmt::format("{} died", describe_rank(*dead))});
}

void Control::look_at_watches(size_t first) {
  for (const int rank : dead_among(first))
    if (!has_failed())
      (void)raise(
          {fcclRemoteError, fmt::format("{} died; its last call was {}", describe_rank(rank), describe_last_call_of(rank))});
}

size_t Control::next_turn(size_t first) const { return first + kWatchedAtOnce < locals_.size() ? first + kWatchedAtOnce : 0; }

// Returns the dead of this host from place `first` on, by one poll.
std::vector<int> Control::dead_among(size_t first) const {
  const auto some = std::span(locals_).subspan(first, std::min(kWatchedAtOnce, locals_.size() - first));
  std::array<pollfd, kWatchedAtOnce> ended{};
  for (size_t i = 0; i < some.size(); ++i) ended[i] = {peers_[some[i]].watch->descriptor(), POLLIN, 0};
  std::vector<int> dead;
  if (::poll(ended.data(), some.size(), 0) == 0) return dead;
  std::ranges::copy_if(some, std::back_inserter(dead), [this](int rank) { return has_died(rank); });
  return dead;
}

std::optional<int> Control::find_remote_dead() const {
  for (int rank = 0; std::cmp_less(rank, peers_.size()); ++rank)
    if (!is_here(rank) && status_of(rank) == PeerStatus::died) return rank;
  return std::nullopt;
}

// Returns a dead rank if this step of the search finds one.
std::optional<int> Control::search(Wait& wait) const {
  const size_t first = std::exchange(wait.searched_from, next_turn(wait.searched_from));
  if (const auto dead = dead_among(first); !dead.empty()) return dead.front();
  return find_remote_dead();
}

// The awaited rank lives, but may wait for the dead rank in turn, or may have failed together with another communicator: no
// call of this communicator can succeed in the end. The dead rank may have done its part of this one.
Result<void> Control::look_for_other_deaths(Wait& wait, Clock::time_point now) {
  if (now - wait.began < kSearchAfter || now < wait.next_search) return {};
  wait.next_search = now + kLookInterval;
  if (!wait.dead) {
    wait.dead = search(wait);
    wait.dead_since = now;
  }
  if (!wait.dead || now - wait.dead_since < kArrivalDelay || is_reached(wait, wait.awaited)) return {};
  const std::string awaited = wait.awaited.rank < 0 ? "any rank" : describe_rank(wait.awaited.rank);
  const std::string last_call =
      is_here(*wait.dead) ? fmt::format("; the last call of rank {} was {}", *wait.dead, describe_last_call_of(*wait.dead))
                          : "";
  return fail(raise({fcclRemoteError, fmt::format("{} died while rank {} waited for {} in {}{}", describe_rank(*wait.dead),
                                                  rank_, awaited, describe_call(wait), last_call)}));
}

}  // namespace fccl::core
