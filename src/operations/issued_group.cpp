// All operations of a group in turn.
#include "operations/issued_group.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "operations/issued_call.h"
#include "operations/issued_transfer.h"
#include "system/clock.h"

namespace fccl {
namespace {

// Steps that get nowhere before the thread yields, and how long it then does before it sleeps.
constexpr int kIdleRounds = 1 << 12;
constexpr int kIdleRoundsOversubscribed = 1 << 4;
constexpr size_t kUsualTransfers = 8;
constexpr std::chrono::milliseconds kGroupYieldsFor{20};
constexpr std::chrono::microseconds kLongestSleepOfGroup{1000};
constexpr int kSleepFractionOfGroup = 64;  // of the time since something moved, which is what a sleep may add to it

}  // namespace

IssuedGroup::IssuedGroup(bool runs_here) : runs_here_(runs_here) {}
IssuedGroup::~IssuedGroup() = default;

void IssuedGroup::add(std::unique_ptr<IssuedCall> call) { calls_.push_back(std::move(call)); }

void IssuedGroup::add(std::unique_ptr<IssuedTransfer> transfer) {
  if (transfers_.empty()) transfers_.reserve(kUsualTransfers);
  runs_here_ ? transfer->queue_and_start() : transfer->queue();
  transfers_.push_back(std::move(transfer));
}

// Whether something moved. What has ended is taken out.
template <class Operation>
bool IssuedGroup::advance_all(std::vector<std::unique_ptr<Operation>>& operations) {
  bool moved = false;
  std::erase_if(operations, [&](const std::unique_ptr<Operation>& operation) {
    const Result<Advance> progress = operation->advance();
    moved = moved || !progress || *progress != Advance::none;
    if (!progress && result_) result_ = fail(progress.error());
    return !progress || *progress == Advance::done;
  });
  return moved;
}

Result<Advance> IssuedGroup::advance() {
  const bool calls_moved = advance_all(calls_), transfers_moved = advance_all(transfers_);
  if (!is_empty()) return calls_moved || transfers_moved ? Advance::some : Advance::none;
  if (!result_) return fail(result_.error());
  return Advance::done;
}

// Whoever moves one transfer of a communicator moves all, so those of one communicator are awaited one after the other.
void IssuedGroup::await_transfers() {
  const auto is_under_way = [](const auto& transfer) { return transfer->is_under_way(); };
  const auto is_elsewhere = [this](const auto& transfer) { return &transfer->lane() != &transfers_.front()->lane(); };
  if (!calls_.empty() || std::ranges::any_of(transfers_, is_elsewhere)) return;
  auto first = transfers_.begin();
  for (int tries = oversubscribed_ ? kIdleRoundsOversubscribed : kIdleRounds; tries > 0; --tries) {
    first = std::find_if(first, transfers_.end(), is_under_way);
    if (first == transfers_.end()) return;
    pause();
    (*first)->lane().progress();
  }
}

Result<void> IssuedGroup::run() {
  await_transfers();
  const int most_rounds = oversubscribed_ ? kIdleRoundsOversubscribed : kIdleRounds;
  int tries = 0;
  Clock::time_point since{};
  for (;;) {
    const Result<Advance> progress = advance();
    if (!progress) return fail(progress.error());
    if (*progress == Advance::done) return {};
    if (*progress == Advance::some) {
      tries = 0;
    } else if (++tries < most_rounds) {
      pause();
    } else {
      const Clock::time_point now = Clock::now();
      if (tries == most_rounds) since = now;
      if (now - since < kGroupYieldsFor)
        sched_yield();
      else
        std::this_thread::sleep_for(std::min<Clock::duration>((now - since) / kSleepFractionOfGroup, kLongestSleepOfGroup));
    }
  }
}

}  // namespace fccl
