// start_thread: starts every thread of the library.
#pragma once

#include <functional>
#include <thread>

#include "base/result.h"

namespace fccl::core {

// Describes a thread. `name` is what /proc and debuggers show, at most 15 letters. `purpose` completes the message of a failed
// start.
struct ThreadRole {
  const char* name;
  const char* purpose;
};

// Starts a thread that takes no signal meant for the application. It still takes signals of its own faults, so that a crash
// handler can report them. Error: fcclSystemError.
Result<std::thread> start_thread(const ThreadRole& role, std::function<void()> work);

}  // namespace fccl::core
