// Tells news from repetitions.
#include "host_link/told_news.h"

#include <utility>

#include "base/check.h"
#include "host_link/host_link_request.h"

namespace fccl::core {

ToldNews::ToldNews(const HostLinkRequest& request)
    : request_(request), gone_(request.host_of.size(), PeerStatus::present), awaited_(request.host_of.size(), kNobody) {}

void ToldNews::keep(const LinkNews& news) {
  const std::lock_guard lock(mutex_);
  if (news.failure && !std::exchange(failed_, true)) queued_.push_back(encode_link(Failure{*news.failure}));
  for (const Departure& departure : news.departures) {
    check(departure.how != PeerStatus::present && request_.host_of[departure.rank] == request_.host(),
          "a leader tells of ranks of its own host that are gone");
    if (std::exchange(gone_[departure.rank], departure.how) == PeerStatus::present) queued_.push_back(encode_link(departure));
  }
  for (const LongWait& wait : news.waits)
    if (std::exchange(awaited_[wait.rank], wait.awaited) != wait.awaited) queued_.push_back(encode_link(wait));
}

std::vector<std::string> ToldNews::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(queued_, {});
}

bool ToldNews::hear_failure() {
  const std::lock_guard lock(mutex_);
  return !std::exchange(failed_, true);
}

bool ToldNews::hear(const Departure& departure) {
  const std::lock_guard lock(mutex_);
  return std::exchange(gone_[departure.rank], departure.how) == PeerStatus::present;
}

bool ToldNews::knows_a_failure() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

bool ToldNews::has_ranks_here() const {
  const std::lock_guard lock(mutex_);
  for (int rank = 0; std::cmp_less(rank, gone_.size()); ++rank)
    if (request_.host_of[rank] == request_.host() && gone_[rank] == PeerStatus::present) return true;
  return false;
}

}  // namespace fccl::core
