// All operations of a group in turn.
#include "communicator/issued_group.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "communicator/issued_call.h"
#include "communicator/issued_transfer.h"
#include "system/clock.h"

namespace fccl {
namespace {

// Steps that get nowhere before the thread yields, and how long it then does before it sleeps.
constexpr int kIdleRounds = 1 << 12;
constexpr int kIdleRoundsOversubscribed = 1 << 4;
constexpr std::chrono::milliseconds kGroupYieldsFor{20};
constexpr std::chrono::microseconds kLongestSleepOfGroup{1000};
constexpr int kSleepFractionOfGroup = 64;  // of the time since something moved, which is what a sleep may add to it

}  // namespace

IssuedGroup::IssuedGroup() = default;
IssuedGroup::~IssuedGroup() = default;

void IssuedGroup::add(std::unique_ptr<IssuedCall> call) { calls_.push_back(std::move(call)); }

void IssuedGroup::add(std::unique_ptr<IssuedTransfer> transfer) { transfers_.push_back(std::move(transfer)); }

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

Result<void> IssuedGroup::run() {
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
