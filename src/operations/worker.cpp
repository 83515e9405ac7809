// The worker's loop.
#include "operations/worker.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "operations/bounced_call.h"
#include "operations/issued_call.h"
#include "operations/issued_group.h"
#include "system/clock.h"
#include "system/per_process.h"
#include "system/thread.h"

namespace fccl {
namespace {

using std::chrono::microseconds;

constexpr microseconds kLongestYielding{1000};
constexpr int kSleepFraction = 64;  // of the time since something moved, which is what a sleep may add to it
// A wake-up costs about 20 us of a virtual machine's processor, so that waiting takes one part in a hundred of it.
constexpr microseconds kLongestSleep{2000};

// A fork that a host function makes has only the thread that was the parent's worker.
thread_local const Worker* served_here = nullptr;

// Not joined at the end: that would hang a process that exits with work outstanding.
constinit PerProcess<Worker> worker;

// No caller is there to catch what a host function throws.
Result<void> call(const Stream::HostFunction& host) {
  constexpr const char* kAdvice = "it must catch what it throws";
  try {
    host.function(host.user_data);
    return {};
  } catch (const std::exception& error) {
    return fail(fcclInvalidUsage,
                fmt::format("a host function threw an exception on the worker: {}; {}", error.what(), kAdvice));
  } catch (...) {
    return fail(fcclInvalidUsage, fmt::format("a host function threw on the worker what is no std::exception; {}", kAdvice));
  }
}

Result<Advance> advance_item(Stream::Item& item) {
  if (auto* operation = std::get_if<std::unique_ptr<IssuedCall>>(&item)) return (*operation)->advance();
  if (auto* operation = std::get_if<std::unique_ptr<BouncedCall>>(&item)) return (*operation)->advance();
  if (auto* group = std::get_if<std::unique_ptr<IssuedGroup>>(&item)) return (*group)->advance();
  FCCL_TRY(call(std::get<Stream::HostFunction>(item)));
  return Advance::done;
}

}  // namespace

Worker& Worker::of_process() { return worker.get(); }

bool Worker::is_this_thread() { return served_here != nullptr && served_here == &of_process(); }

Result<void> Worker::add(Stream& stream) {
  const std::lock_guard lock(mutex_);
  if (!running_) {
    auto thread = start_thread({"fccl-worker", "serves this process's streams"}, [this] { serve(); });
    if (!thread) return fail(std::move(thread).error());
    thread->detach();
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

void Worker::enqueue(Stream& stream, Stream::Item item) {
  const std::lock_guard lock(mutex_);
  stream.items_.push_back(std::move(item));
  work_.notify_all();
}

void Worker::wait_until(const std::function<bool()>& done) {
  Lock lock(mutex_);
  ended_.wait(lock, done);
}

void Worker::serve() {
  served_here = this;
  std::vector<Stream*> busy;
  bool is_idle = false;
  Clock::time_point idle_since;
  Lock lock(mutex_);
  while (!streams_.empty()) {
    busy.clear();
    std::copy_if(streams_.begin(), streams_.end(), std::back_inserter(busy), [](Stream* s) { return !s->items_.empty(); });
    if (busy.empty()) {
      work_.wait(lock);
      continue;
    }
    bool moved = false;
    for (Stream* stream : busy) moved |= advance(*stream, lock);
    if (!moved) {
      const Clock::time_point now = Clock::now();
      if (!is_idle) idle_since = now;
      back_off(lock, now - idle_since, yielding_of(busy));
    }
    is_idle = !moved;
  }
  running_ = false;
}

// Takes the stream's first item as far as it goes, without the mutex: others only append. Whether it moved.
bool Worker::advance(Stream& stream, Lock& lock) {
  Stream::Item& item = stream.items_.front();
  lock.unlock();
  Result<Advance> progress = advance_item(item);
  lock.lock();
  if (progress && *progress != Advance::done) return *progress == Advance::some;
  if (!progress && stream.result_) stream.result_ = fail(std::move(progress).error());
  stream.items_.pop_front();
  ended_.notify_all();
  return true;
}

// Of all that is outstanding the shortest: what takes long on the network needs the core for itself.
microseconds Worker::yielding_of(std::span<Stream* const> idle) {
  microseconds shortest = kLongestYielding;
  for (const Stream* stream : idle) {
    const Stream::Item& item = stream->items_.front();
    if (const auto* operation = std::get_if<std::unique_ptr<IssuedCall>>(&item))
      shortest = std::min(shortest, (*operation)->yielding());
    if (const auto* operation = std::get_if<std::unique_ptr<BouncedCall>>(&item))
      shortest = std::min(shortest, (*operation)->yielding());
  }
  return shortest;
}

void Worker::back_off(Lock& lock, Clock::duration idle, Clock::duration yielding) {
  if (idle >= yielding) {
    work_.wait_for(lock, std::min<Clock::duration>(idle / kSleepFraction, kLongestSleep));
    return;
  }
  lock.unlock();
  sched_yield();
  lock.lock();
}

}  // namespace fccl
