// The worker's loop, and how other threads serve a stream.
#include "operations/worker.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "operations/stream_item.h"
#include "os/per_process.h"
#include "os/thread.h"
#include "waiting/backoff.h"
#include "waiting/counter.h"

namespace fccl::core {
namespace {

using std::chrono::microseconds;

// A wake-up costs a virtual machine's processor about 20 us, so at this length waiting takes one percent of it.
constexpr microseconds kLongestSleep{2000};
constexpr Backoff kWhenIdle{.yield_for = microseconds(1000), .longest_sleep = kLongestSleep};

// Polls of a short call by the thread that issues it, before it wakes the worker, which takes about as long; also polls of a
// waiting thread before it yields between polls.
constexpr int kTriesAtOnce = 64;
// How long a waiting thread serves a stream on which nothing moves.
constexpr microseconds kServesFor{1000};

// The thread is not joined at exit: joining would hang a process that exits with work outstanding.
constinit PerProcess<Worker> worker;

}  // namespace

Worker& Worker::of_process() { return worker.get(); }

Result<void> Worker::add(Stream& stream) {
  const std::lock_guard lock(mutex_);
  if (!running_) {
    FCCL_TRY_ASSIGN(auto thread, start_thread({"fccl-worker", "serves this process's streams"}, [this] { serve(); }));
    thread.detach();
  }
  running_ = true;
  streams_.push_back(&stream);
  return {};
}

void Worker::remove(Stream& stream) {
  const std::lock_guard lock(mutex_);
  std::erase(streams_, &stream);
  work_.notify_all();
}

void Worker::enqueue(Stream& stream, std::unique_ptr<StreamItem> item) {
  Lock lock(mutex_);
  stream.items_.push_back(std::move(item));
  ++stream.issued_;
  if (stream.items_.size() == 1 && !stream.is_served_) try_at_once(stream, lock);
  if (!stream.items_.empty()) work_.notify_all();
}

// The peers make a short call at about the same time.
void Worker::try_at_once(Stream& stream, Lock& lock) {
  const StreamItem& item = *stream.items_.front();
  if (!item.is_short()) return;
  const int tries = item.may_spin() ? kTriesAtOnce : 1;
  const uint64_t before = stream.finished_;
  stream.is_served_ = true;
  for (int i = 0; i < tries && stream.finished_ == before; ++i)
    if (!advance(stream, lock)) spin_pause();
  stream.is_served_ = false;
}

bool Worker::wait_for(Stream& stream, uint64_t position, Deadline deadline) {
  const auto is_done = [&] { return stream.finished_ >= position; };
  Lock lock(mutex_);
  // The thread that serves the stream may be about to leave it.
  for (int i = 0; i < kTriesAtOnce && stream.is_served_ && !is_done(); ++i) {
    lock.unlock();
    spin_pause();
    lock.lock();
  }
  // The worker may stay inside a host function of another stream for long, so the thread relies on itself after that.
  for (microseconds patience = kServesFor; !is_done(); patience = microseconds(0)) {
    if (!stream.is_served_) serve_here(stream, position, {deadline, patience}, lock);
    const Clock::time_point now = Clock::now();
    if (is_done() || now >= deadline.at) break;
    ended_.wait_until(lock, std::min(deadline.at, now + kLongestSleep), is_done);
  }
  return is_done();
}

// Serves until `position` items are finished, or nothing has moved for `patience`: the worker then goes on.
void Worker::serve_here(Stream& stream, uint64_t position, const Limits& limits, Lock& lock) {
  const bool has_deadline = limits.deadline.at != Clock::time_point::max();
  stream.is_served_ = true;
  Clock::time_point until{};
  for (int looks = 0; stream.finished_ < position; ++looks) {
    if (advance(stream, lock)) {
      looks = 0;
      if (has_deadline && limits.deadline.passed()) break;
    } else if (looks < kTriesAtOnce) {
      spin_pause();
    } else {
      const Clock::time_point now = Clock::now();
      if (looks == kTriesAtOnce) until = std::min(now + limits.patience, limits.deadline.at);
      if (now >= until) break;
      lock.unlock();
      sched_yield();
      lock.lock();
    }
  }
  stream.is_served_ = false;
  if (!stream.items_.empty()) work_.notify_all();
}

void Worker::serve() {
  std::vector<Stream*> busy;
  bool is_idle = false;
  Clock::time_point idle_since;
  Lock lock(mutex_);
  while (!streams_.empty()) {
    busy.clear();
    std::copy_if(streams_.begin(), streams_.end(), std::back_inserter(busy),
                 [](const Stream* stream) { return !stream->items_.empty() && !stream->is_served_; });
    if (busy.empty()) {
      is_idle = false;
      work_.wait(lock);
      continue;
    }
    const bool moved = advance_each(busy, lock);
    if (!moved) {
      const Clock::time_point now = Clock::now();
      if (!is_idle) idle_since = now;
      back_off(lock, now - idle_since);
    }
    is_idle = !moved;
  }
  running_ = false;
}

// Advances each stream as far as it goes. While one is advanced, a waiting thread may empty another one and destroy it.
bool Worker::advance_each(std::span<Stream* const> busy, Lock& lock) {
  bool moved = false;
  for (Stream* stream : busy) {
    if (std::find(streams_.begin(), streams_.end(), stream) == streams_.end()) continue;
    if (stream->items_.empty() || stream->is_served_) continue;
    stream->is_served_ = true;
    moved |= advance(*stream, lock);
    stream->is_served_ = false;
  }
  return moved;
}

// Advances the stream's first item as far as it goes, without the mutex: other threads only append. Returns true if it moved.
bool Worker::advance(Stream& stream, Lock& lock) {
  StreamItem& item = *stream.items_.front();
  lock.unlock();
  Result<Advance> progress = item.advance();
  lock.lock();
  if (progress && *progress != Advance::done) return *progress == Advance::some;
  if (!progress && stream.result_) stream.result_ = fail(std::move(progress).error());
  stream.items_.pop_front();
  ++stream.finished_;
  ended_.notify_all();
  return true;
}

// Takes the shortest of all outstanding operations: a long one on the network needs the core for itself.
microseconds Worker::shortest_yielding() const {
  microseconds shortest = kWhenIdle.yield_for;
  for (const Stream* stream : streams_) {
    if (stream->items_.empty() || stream->is_served_) continue;
    shortest = std::min(shortest, stream->items_.front()->yielding());
  }
  return shortest;
}

void Worker::back_off(Lock& lock, Clock::duration idle) {
  if (idle >= shortest_yielding()) {
    work_.wait_for(lock, kWhenIdle.sleep_after(idle));
    return;
  }
  lock.unlock();
  sched_yield();
  lock.lock();
}

}  // namespace fccl::core
