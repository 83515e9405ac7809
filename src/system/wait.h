// Waiting: spin, then yield, then sleep, and now and then the slow path that knows why a wait may never end.
#pragma once

#include <chrono>

#include "base/result.h"
#include "system/counter.h"

namespace fccl {

// What the code that waits cannot know: clock, abort, deaths, the peers' last calls. Given by the communicator to the waiting
// code below it; an error ends the wait.
struct SlowPath {
  Result<void> (*look)(void* context, const Awaited& awaited) = nullptr;
  void* context = nullptr;
  // Whether who is awaited was last seen on this thread's processor, so that spinning keeps it from running; null: never.
  bool (*is_here)(void* context, const Awaited& awaited) = nullptr;
};

// What a wait does between two looks at its counter where others do not raise it by themselves: a poll of the network. Never
// waits.
struct Poll {
  void (*poll)(void* context) = nullptr;
  void* context = nullptr;
  // How long a wait yields between polls before it sleeps between them. What takes long on the network is not there sooner for
  // whoever asks all the time, and the kernel needs the core to move it.
  std::chrono::microseconds yield_for = std::chrono::milliseconds(20);

  explicit operator bool() const { return poll != nullptr; }
};

// How a wait shares the processor with whom it waits for.
struct Haste {
  bool oversubscribed;  // more ranks than cores, so spinning would keep the awaited rank from running
  // So many ranks for each core that to look often would, too: the wait sleeps for that long between two looks. 0: not so many.
  std::chrono::microseconds nap{0};
};

// Waits on this thread, for a phase that has stopped.
Result<void> await(const Awaited& awaited, const SlowPath& slow, const Haste& haste, const Poll& poll = {});

}  // namespace fccl
