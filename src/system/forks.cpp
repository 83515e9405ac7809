// forks: how often this process is a fork of one that had the library loaded.
#include "system/forks.h"

#include <pthread.h>

#include "base/check.h"

namespace fccl {

constinit std::atomic<unsigned> fork_count{0};

namespace {

// When the library is loaded, not at first use: another thread could fork in the middle of that.
[[maybe_unused]] const bool kCounting = [] {
  const int registered = pthread_atfork(nullptr, nullptr, [] { fork_count.fetch_add(1, std::memory_order_relaxed); });
  check(registered == 0, "a fork handler can be registered");
  return true;
}();

}  // namespace
}  // namespace fccl
