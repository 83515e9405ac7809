// Waiting: spins, then yields, then sleeps, and regularly checks why a wait may never end.
#pragma once

#include <chrono>

#include "base/result.h"
#include "waiting/counter.h"

namespace fccl::core {

// The check that a wait cannot make itself: clock, abort, deaths, the peers' last calls. The communicator passes it down to the
// waiting code; an error ends the wait.
struct SlowPath {
  Result<void> (*look)(void* context, const Awaited& awaited) = nullptr;
  void* context = nullptr;
  // True if the awaited rank was last seen on this thread's processor, so that spinning keeps it from running; null: never.
  bool (*is_here)(void* context, const Awaited& awaited) = nullptr;
};

// The work of a wait between two checks of its counter if only this thread moves the data, by polling the network. Never
// blocks.
struct Poll {
  void (*poll)(void* context) = nullptr;
  void* context = nullptr;
  // The time for which a wait yields between polls before it sleeps between them. Polling more often does not speed up a slow
  // network, and the kernel needs the core to move the data.
  std::chrono::microseconds yield_for = std::chrono::milliseconds(20);

  explicit operator bool() const { return poll != nullptr; }
};

// Tells a wait how it shares processors with the ranks that it waits for.
struct Haste {
  bool oversubscribed;  // more ranks than cores, so spinning would keep the awaited rank from running
  // Sleep between two checks, used when many ranks share a core; 0 = do not sleep.
  std::chrono::microseconds nap{0};
};

// Blocks this thread until a stopped phase can continue.
Result<void> await(const Awaited& awaited, const SlowPath& slow, const Haste& haste, const Poll& poll = {});

}  // namespace fccl::core
