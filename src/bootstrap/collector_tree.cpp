// Fills the tree from above.
#include "bootstrap/collector_tree.h"

#include <algorithm>
#include <utility>

namespace fccl::core {
namespace {

using namespace std::chrono_literals;

// A rank that gives up waits longer for the root's answer.
constexpr auto kAnswerTime = 150ms;

}  // namespace

std::optional<PlaceInTree> CollectorTree::place(int rank, Collects collects) {
  std::optional<PlaceInTree> place;
  const auto has_room = [](const Collecting& each) { return !each.address.empty() && each.children < kMostChildren; };
  if (children_ >= kMostChildren && !collects.is_astray)
    if (const auto parent = std::ranges::find_if(collectors_, has_room); parent != collectors_.end()) {
      ++parent->children;
      place = {parent->address, parent->rank};
    }
  if (!place) ++children_;
  if (!collects.is_astray) collectors_.push_back({rank, std::move(collects.address)});
  return place;
}

bool CollectorTree::inquire(Error failure) {
  if (collectors_.empty()) return false;
  if (!inquiry_) inquiry_ = {Deadline::after(kAnswerTime), std::move(failure)};
  return true;
}

std::optional<Deadline> CollectorTree::patience() const { return inquiry_ ? std::optional(inquiry_->end) : std::nullopt; }

void CollectorTree::hear_from(int rank) {
  for (Collecting& each : collectors_)
    if (each.rank == rank) each.is_present = true;
}

std::optional<Error> CollectorTree::conclude(std::optional<int>& silent) {
  if (!inquiry_) return std::nullopt;
  const auto found = std::ranges::find(collectors_, false, &Collecting::is_present);
  if (found != collectors_.end() && !inquiry_->end.passed()) return std::nullopt;
  if (found != collectors_.end()) silent = found->rank;
  return std::exchange(inquiry_, std::nullopt)->failure;
}

}  // namespace fccl::core
