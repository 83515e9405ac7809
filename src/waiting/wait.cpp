// Waits for a counter in a blocking call.
#include "waiting/wait.h"

#include <chrono>
#include <thread>

#include "waiting/backoff.h"

namespace fccl::core {
namespace {

using std::chrono::milliseconds;

constexpr int kPauses = 1 << 14;  // spins for about half a millisecond
constexpr int kPausesBeforeCheck = 1 << 8;
constexpr int kPausesOversubscribed = 1 << 6;  // spins for about as long as a context switch takes
constexpr milliseconds kLookEvery{1};

// Stops spinning early if the awaited rank was last seen on this processor, because spinning would keep it from running.
bool comes_while_spinning(const Awaited& awaited, const SlowPath& slow, const Haste& haste) {
  if (haste.oversubscribed) return awaited.reached_within(kPausesOversubscribed);
  if (awaited.reached_within(kPausesBeforeCheck)) return true;
  if (slow.is_here != nullptr && slow.is_here(slow.context, awaited)) return false;
  return awaited.reached_within(kPauses - kPausesBeforeCheck);
}

}  // namespace

Result<void> await(const Awaited& awaited, const SlowPath& slow, const Haste& haste, const Poll& poll) {
  if (!poll && comes_while_spinning(awaited, slow, haste)) return {};
  const Clock::time_point begin = Clock::now();
  Clock::time_point next_look = begin + kLookEvery;
  Backoff backoff = kForPeers;
  if (poll) backoff.yield_for = poll.yield_for;
  while (!awaited.reached()) {
    const Clock::time_point now = Clock::now();
    if (now >= next_look) {
      FCCL_TRY(slow.look(slow.context, awaited));
      next_look = now + kLookEvery;
    }
    if (poll) {
      poll.poll(poll.context);
      if (awaited.reached()) break;
    }
    if (haste.nap.count() > 0)
      std::this_thread::sleep_for(haste.nap);
    else
      backoff.rest(now - begin);
  }
  return {};
}

}  // namespace fccl::core
