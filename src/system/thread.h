// start_thread: the one way in which the library starts a thread.
#pragma once

#include <functional>
#include <thread>

#include "base/result.h"

namespace fccl {

// A thread of the library: what /proc and debuggers call it, at most 15 letters, and what it does, for the message that there
// is none.
struct ThreadRole {
  const char* name;
  const char* purpose;
};

// The thread takes no signal that is meant for the application; those of its own faults it does, so that whoever reports
// crashes hears of them. Errors: fcclSystemError.
Result<std::thread> start_thread(const ThreadRole& role, std::function<void()> work);

}  // namespace fccl
