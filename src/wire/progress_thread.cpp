// Polling now and then.
#include "wire/progress_thread.h"

#include <algorithm>

#include "wire/endpoint.h"

namespace fccl {
namespace {

using std::chrono::microseconds;

constexpr microseconds kShortestSleep{20};
constexpr microseconds kLongestSleep{1000};
// While others poll. To wake costs the ranks a core when they need it: with 1 ms, 64 bytes between two hosts on two cores took
// 1.15 of the time.
constexpr microseconds kLongestSleepBeside{16000};

}  // namespace

void ProgressThread::start(Endpoint& endpoint) {
  if (!thread_.joinable()) thread_ = std::thread(&ProgressThread::run, this, std::ref(endpoint));
}

void ProgressThread::wake() {
  const std::lock_guard lock(mutex_);
  is_woken_ = true;
  wakes_.notify_one();
}

void ProgressThread::stop() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = is_woken_ = true;
    wakes_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

bool ProgressThread::sleeps(microseconds time, bool& stops) {
  std::unique_lock lock(mutex_);
  const bool woken = wakes_.wait_for(lock, time, [this] { return is_woken_; });
  is_woken_ = false;
  stops = stops_;
  return woken;
}

void ProgressThread::run(Endpoint& endpoint) {
  microseconds sleep = kShortestSleep;
  uint64_t polls = endpoint.polls();
  for (;;) {
    bool stops = false;
    const bool woken = sleeps(sleep, stops);
    if (stops) return;
    const uint64_t finds = endpoint.finds();
    // What others find, they are there for.
    const bool alone = endpoint.polls() == polls;
    if (alone) endpoint.progress();
    polls = endpoint.polls();
    const bool busy = woken || (alone && endpoint.finds() != finds);
    sleep = busy ? kShortestSleep : std::min(sleep * 2, alone ? kLongestSleep : kLongestSleepBeside);
  }
}

}  // namespace fccl
