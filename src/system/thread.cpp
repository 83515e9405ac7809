// start_thread: the one way in which the library starts a thread.
#include "system/thread.h"

#include <fmt/format.h>
#include <pthread.h>

#include <csignal>
#include <exception>
#include <initializer_list>
#include <utility>

namespace fccl {
namespace {

// While it lives, this thread and those that it starts leave the application's signals to others. A fault that is blocked would
// end the process without a word.
class LeavesSignalsToOthers {
 public:
  LeavesSignalsToOthers() {
    sigset_t others;
    sigfillset(&others);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&others, fault);
    pthread_sigmask(SIG_BLOCK, &others, &before_);
  }
  ~LeavesSignalsToOthers() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  LeavesSignalsToOthers(const LeavesSignalsToOthers&) = delete;
  LeavesSignalsToOthers& operator=(const LeavesSignalsToOthers&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

Result<std::thread> start_thread(const ThreadRole& role, std::function<void()> work) {
  const LeavesSignalsToOthers here;
  // Out of threads is an exception of its own, out of memory is another.
  try {
    std::thread started(std::move(work));
    pthread_setname_np(started.native_handle(), role.name);
    return started;
  } catch (const std::exception& error) {
    return fail(fcclSystemError, fmt::format("cannot start {}, the thread that {}: {}; raise the limit on threads (ulimit -u, "
                                             "the container's pids limit) or free memory",
                                             role.name, role.purpose, error.what()));
  }
}

}  // namespace fccl
