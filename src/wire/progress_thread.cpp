// Polls now and then.
#include "wire/progress_thread.h"

#include <algorithm>
#include <chrono>

#include "os/thread.h"
#include "wire/endpoint.h"

namespace fccl::core {
namespace {

using std::chrono::microseconds;

constexpr microseconds kShortestSleep{20};
constexpr microseconds kLongestSleep{1000};
// Longest sleep while others poll: waking up takes a core from the ranks when they need it; at 1 ms that costs a tenth of a
// 64-byte call between hosts.
constexpr microseconds kLongestSleepBeside{4000};

}  // namespace

Result<void> ProgressThread::start(Endpoint& endpoint) {
  if (thread_.joinable()) return {};
  FCCL_TRY_ASSIGN(auto thread,
                  start_thread({"fccl-progress", "polls the network when nobody else does"}, [&] { run(endpoint); }));
  thread_ = std::move(thread);
  return {};
}

void ProgressThread::stop() {
  stops_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

void ProgressThread::run(Endpoint& endpoint) {
  microseconds sleep = kShortestSleep;
  uint64_t polls = endpoint.polls();
  while (!stops_.load(std::memory_order_relaxed)) {
    std::this_thread::sleep_for(sleep);
    const uint64_t finds = endpoint.finds();
    // If another thread found something, no quick poll is needed here: that thread is awake.
    const bool alone = endpoint.polls() == polls;
    if (alone) endpoint.progress();
    polls = endpoint.polls();
    sleep =
        alone && endpoint.finds() != finds ? kShortestSleep : std::min(sleep * 2, alone ? kLongestSleep : kLongestSleepBeside);
  }
}

}  // namespace fccl::core
