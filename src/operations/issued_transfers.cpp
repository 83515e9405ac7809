// The start of all at once, and the rounds over those that have not ended by then.
#include "operations/issued_transfers.h"

#include <utility>

#include "operations/between_rounds.h"

namespace fccl {
namespace {

// In the turn that starts them: no longer than a peer takes that is at work on the same group.
constexpr int kLooksAtOnce = 64;
constexpr int kLooksAtOnceOversubscribed = 4;

}  // namespace

void IssuedTransfers::add(const IssuedTransfer::Around& around, const TransferEnd& transfer) {
  if (used_ == places_.size()) places_.push_back(std::make_unique<std::optional<IssuedTransfer>>());
  places_[used_++]->emplace(around, transfer);
}

Result<void> IssuedTransfers::run(bool oversubscribed) {
  Result<void> result;
  if (used_ > 0) {
    start_all(oversubscribed);
    result = run_in_rounds(oversubscribed);
  }
  used_ = 0;
  return result;
}

// Whoever moves one transfer of a communicator moves all.
void IssuedTransfers::start_all(bool oversubscribed) {
  TransferLane::Turn turn(at(0).lane());
  for (size_t place = 0; place < used_; ++place) at(place).queue_and_start(turn);
  size_t ended = 0;
  for (int looks = oversubscribed ? kLooksAtOnceOversubscribed : kLooksAtOnce; looks > 0; --looks) {
    while (at(ended).has_ended())
      if (++ended == used_) return;
    turn.progress();
  }
}

// The failure of one ends that one alone: the others go on to their own ends.
Result<void> IssuedTransfers::run_in_rounds(bool oversubscribed) {
  Result<void> result;
  BetweenRounds between(oversubscribed);
  for (;;) {
    size_t over = 0;
    bool moved = false;
    for (size_t place = 0; place < used_; ++place) {
      if (!at(place).is_over()) {
        auto progress = at(place).advance_behind_progress();
        moved = moved || !progress || *progress != Advance::none;
        if (!progress && result) result = fail(std::move(progress).error());
      }
      if (at(place).is_over()) ++over;
    }
    if (over == used_) return result;
    moved ? between.has_moved() : between.wait();
    at(0).lane().progress();
  }
}

}  // namespace fccl
