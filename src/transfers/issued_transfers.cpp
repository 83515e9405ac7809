// Starts all transfers at once, and looks at each one only now and then.
#include "transfers/issued_transfers.h"

#include <algorithm>
#include <utility>

#include "transfers/transfer_lane.h"
#include "waiting/between_rounds.h"

namespace fccl::core {
namespace {

// Looks in the turn that starts the transfers: as long as a peer takes that works on its half of the group.
constexpr int kLooksAtOnce = 64;
constexpr int kLooksAtOnceOversubscribed = 4;

// Number of steps between two readings of the clock.
constexpr int kStepsPerClock = 8;
constexpr std::chrono::milliseconds kLookAtAllEvery{1};
// Additional interval per transfer, so that looks at a large group take a small part of the time.
constexpr std::chrono::nanoseconds kLessOftenBy{200};

}  // namespace

void IssuedTransfers::add(const IssuedTransfer::Around& around, const TransferEnd& transfer) {
  if (used_ == places_.size()) places_.push_back(std::make_unique<std::optional<IssuedTransfer>>());
  places_[used_++]->emplace(around, transfer, &progress_);
}

void IssuedTransfers::queue(const IssuedTransfer::Around& around, const TransferEnd& transfer) {
  add(around, transfer);
  at(used_ - 1).queue();
}

// All start in one turn, since the thread that moves one transfer of a communicator moves all.
Result<void> IssuedTransfers::run(bool oversubscribed) {
  if (used_ == 0) return {};
  {
    TransferLane::Turn turn(lane());
    all_started_ = true;
    for (size_t place = 0; place < used_; ++place) all_started_ = turn.start(at(place).operation()) && all_started_;
    int looks = oversubscribed ? kLooksAtOnceOversubscribed : kLooksAtOnce;
    while (looks-- > 0 && progress_.ended.load(std::memory_order_relaxed) != used_) turn.progress();
  }
  return advance_until_done(*this, oversubscribed);
}

Result<Advance> IssuedTransfers::advance() {
  const bool may_move = progress_.ended.load(std::memory_order_acquire) < used_;
  if (may_move) lane().progress();
  const uint64_t moves = progress_.moved.load(std::memory_order_acquire);
  bool moved = std::exchange(seen_moves_, moves) != moves;
  if (is_look_due(moved)) moved = look_at_all() || moved;
  if (used_ > 0) return moved ? Advance::some : Advance::none;
  return finish();
}

// True if a look at each transfer is needed: for starts, ends, and failures of waits that stand still.
bool IssuedTransfers::is_look_due(bool moved) {
  if (progress_.ended.load(std::memory_order_acquire) == used_) return true;
  if (moved && progress_.differs.exchange(false, std::memory_order_relaxed)) return true;
  if (!all_started_) return true;
  if (++steps_ % kStepsPerClock != 0) return false;
  const Clock::time_point now = Clock::now();
  if (next_look_ == Clock::time_point{}) next_look_ = now + kLookAtAllEvery;
  return now >= next_look_;
}

// Returns true if a transfer moved or ended. Only the first wait for each rank is judged: the failure that it finds is that of
// all.
bool IssuedTransfers::look_at_all() {
  size_t over = 0;
  bool moved = false, started = true;
  judged_.assign(judged_.size(), false);
  for (size_t place = 0; place < used_; ++place) {
    IssuedTransfer& transfer = at(place);
    if (!transfer.is_over()) {
      const bool judges = !result_ || is_first_at(transfer.other());
      const auto progress = transfer.advance(judges, !has_warned_);
      has_warned_ = has_warned_ || transfer.has_warned();
      moved = moved || !progress || *progress != Advance::none;
      if (!progress && result_) result_ = fail(progress.error());
      started = started && transfer.has_started();
    }
    if (transfer.is_over()) ++over;
  }
  all_started_ = started;
  if (over == used_)
    used_ = 0;
  else
    next_look_ = Clock::now() + kLookAtAllEvery + used_ * kLessOftenBy;
  return moved;
}

bool IssuedTransfers::is_first_at(int rank) {
  const auto place = static_cast<size_t>(std::max(rank, -1) + 1);
  if (place >= judged_.size()) judged_.resize(place + 1);
  const bool is_first = !judged_[place];
  judged_[place] = true;
  return is_first;
}

Result<Advance> IssuedTransfers::finish() {
  progress_.ended = 0;
  progress_.differs = false;
  all_started_ = false;
  has_warned_ = false;
  steps_ = 0;
  next_look_ = {};
  FCCL_TRY(std::exchange(result_, {}));
  return Advance::done;
}

}  // namespace fccl::core
