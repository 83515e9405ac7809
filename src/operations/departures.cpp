// Who has died or left: of this host by its process, of the others as far as their leaders tell.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <span>

#include "operations/control.h"

namespace fccl {
namespace {

// Processes that one question to the kernel is about.
constexpr size_t kWatchedAtOnce = 64;

}  // namespace

void Control::hear_of_departure(int rank, Gone how) {
  segment_->fate(rank).store(how == Gone::left ? Fate::left : Fate::died, std::memory_order_release);
}

void Control::hear_of_end(int leader, LinkEnd how) {
  const auto set_fate = [this](int rank, Fate fate) {
    Fate present = Fate::present;
    segment_->fate(rank).compare_exchange_strong(present, fate);
  };
  if (how != LinkEnd::unheard) set_fate(leader, how == LinkEnd::goodbye ? Fate::left : Fate::died);
  // An orderly leave is no failure: the ranks behind that leader are unheard then, not out of reach.
  const bool has_left = fate_of(how == LinkEnd::unheard ? 0 : leader) == Fate::left;
  for (int rank = 0; std::cmp_less(rank, peers_.size()); ++rank)
    if (share_a_host(rank, leader)) set_fate(rank, has_left ? Fate::unheard : Fate::out_of_reach);
}

void Control::leave() {
  segment_->state(local()).left.store(1, std::memory_order_release);
  tell_leader();
}

std::vector<Departure> Control::local_departures() const {
  std::vector<Departure> departures;
  for (const int rank : locals_) {
    // In this order: it may leave and exit in between.
    const bool alive = peers_[rank].watch->alive();
    if (has_left(rank))
      departures.push_back({rank, Gone::left});
    else if (!alive)
      departures.push_back({rank, Gone::died});
  }
  return departures;
}

std::vector<std::shared_ptr<ProcessWatch>> Control::local_watches() const {
  std::vector<std::shared_ptr<ProcessWatch>> watches;
  for (const int rank : locals_)
    if (rank != rank_) watches.push_back(peers_[rank].watch);
  return watches;
}

bool Control::has_died(int rank) const {
  if (!is_here(rank)) return fate_of(rank) == Fate::died;
  // In this order: it may leave and exit in between.
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
  look_for_deaths_beyond();
  for (size_t first = 0; first < locals_.size(); first += kWatchedAtOnce) look_at_watches(first);
}

void Control::look_for_deaths_by_turns() {
  look_for_deaths_beyond();
  look_at_watches(next_watch_);
  next_watch_ = next_watch_ + kWatchedAtOnce < locals_.size() ? next_watch_ + kWatchedAtOnce : 0;
}

void Control::look_for_deaths_beyond() {
  for (int rank = 0; std::cmp_less(rank, peers_.size()); ++rank)
    if (!is_here(rank) && !has_failed() && fate_of(rank) == Fate::died)
      (void)raise({fcclRemoteError, fmt::format("{} died", describe_rank(rank))});
}

// At those of this host from place `first` on, by one question to the kernel.
void Control::look_at_watches(size_t first) {
  const auto some = std::span(locals_).subspan(first, std::min(kWatchedAtOnce, locals_.size() - first));
  std::array<pollfd, kWatchedAtOnce> ended{};
  for (size_t i = 0; i < some.size(); ++i) ended[i] = {peers_[some[i]].watch->descriptor(), POLLIN, 0};
  if (::poll(ended.data(), some.size(), 0) == 0) return;
  for (const int rank : some)
    if (!has_failed() && has_died(rank))
      (void)raise(
          {fcclRemoteError, fmt::format("{} died; its last call was {}", describe_rank(rank), describe_last_call_of(rank))});
}

}  // namespace fccl
