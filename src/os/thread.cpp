// Starts and names a thread, and turns failures into errors with advice.
#include "os/thread.h"

#include <fmt/format.h>
#include <pthread.h>

#include <exception>
#include <utility>

#include "os/signals_held_back.h"

namespace fccl::core {
Result<std::thread> start_thread(const ThreadRole& role, std::function<void()> work) {
  const SignalsHeldBack here;
  // A lack of threads and a lack of memory throw different exceptions; both are caught here.
  try {
    std::thread started(std::move(work));
    pthread_setname_np(started.native_handle(), role.name);
    return started;
  } catch (const std::exception& error) {
    return fail(MessageKind::no_thread,
                fmt::format("cannot start {}, the thread that {}: {}; raise the limit on threads (ulimit -u, "
                            "the container's pids limit) or free memory",
                            role.name, role.purpose, error.what()));
  }
}

}  // namespace fccl::core
