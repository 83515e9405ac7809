// Counts forks by a handler that runs in each child.
#include "os/forks.h"

#include <pthread.h>

#include "base/check.h"

namespace fccl::core {

constinit std::atomic<unsigned> fork_count{0};

namespace {

// Registers when the library is loaded. At first use, another thread could fork in the middle of it.
[[maybe_unused]] const bool kCounting = [] {
  const int registered = pthread_atfork(nullptr, nullptr, [] { fork_count.fetch_add(1, std::memory_order_relaxed); });
  check(registered == 0, "a fork handler can be registered");
  return true;
}();

}  // namespace
}  // namespace fccl::core
