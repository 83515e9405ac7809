// The worker's loop.
#include "communicator/worker.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "base/check.h"

namespace fccl {
namespace {

constexpr int kSpinRounds = 256;
constexpr int kYieldRounds = 2048;
constexpr std::chrono::microseconds kShortestSleep{20};
constexpr std::chrono::microseconds kLongestSleep{1000};

thread_local bool serving = false;

// A fork has none of its parent's threads, and finds the parent's mutex in whatever state it was.
std::atomic<Worker*>& current_worker() {
  static std::atomic<Worker*> current{new Worker};
  return current;
}

}  // namespace

// Never destroyed, since its thread is detached: a thread that is joined by a static destructor would hang a process that exits
// with work outstanding.
Worker& Worker::of_process() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { current_worker() = new Worker; });
  check(registered == 0, "a fork handler can be registered");
  return *current_worker();
}

bool Worker::is_this_thread() { return serving; }

void Worker::add(Stream& stream) {
  const std::lock_guard lock(mutex_);
  streams_.push_back(&stream);
  if (!std::exchange(running_, true)) std::thread([this] { serve(); }).detach();
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
  std::unique_lock lock(mutex_);
  ended_.wait(lock, done);
}

// True when the first item is done. Without the mutex: others only append.
bool Worker::advance(Stream& stream, Round& round) {
  Stream::Item* item;
  {
    const std::lock_guard lock(mutex_);
    item = &stream.items_.front();
  }
  if (auto* host = std::get_if<Stream::HostFunction>(item)) {
    host->function(host->user_data);
    return round.moved = true;
  }
  Operation& operation = *std::get<std::unique_ptr<Operation>>(*item);
  const bool done = operation.advance();
  round.moved |= operation.moved() || done;
  return done;
}

void Worker::serve() {
  serving = true;
  std::vector<Stream*> busy;
  int idle_rounds = 0;
  std::unique_lock lock(mutex_);
  while (!streams_.empty()) {
    busy.clear();
    std::copy_if(streams_.begin(), streams_.end(), std::back_inserter(busy), [](Stream* s) { return !s->items_.empty(); });
    if (busy.empty()) {
      work_.wait(lock);
      continue;
    }
    Round round;
    for (Stream* stream : busy) {
      lock.unlock();
      const bool done = advance(*stream, round);
      lock.lock();
      if (!done) continue;
      if (auto* operation = std::get_if<std::unique_ptr<Operation>>(&stream->items_.front());
          operation != nullptr && !(*operation)->result() && stream->result_)
        stream->result_ = (*operation)->result();
      stream->items_.pop_front();
      ended_.notify_all();
    }
    idle_rounds = round.moved ? 0 : idle_rounds + 1;
    if (idle_rounds > 0) back_off(lock, idle_rounds);
  }
  running_ = false;
}

void Worker::back_off(std::unique_lock<std::mutex>& lock, int idle_rounds) {
  if (idle_rounds <= kSpinRounds) return;
  if (idle_rounds <= kYieldRounds) {
    lock.unlock();
    sched_yield();
    lock.lock();
    return;
  }
  const auto sleep = std::min(kLongestSleep, kShortestSleep * (idle_rounds - kYieldRounds));
  work_.wait_for(lock, sleep);
}

Stream::Stream() : worker_(&Worker::of_process()) { worker_->add(*this); }

Stream::~Stream() {
  if (worker_ != &Worker::of_process()) return;
  (void)synchronize();
  worker_->remove(*this);
}

void Stream::enqueue(std::unique_ptr<Operation> operation) { worker_->enqueue(*this, std::move(operation)); }

void Stream::enqueue(fcclHostFunc_t function, void* user_data) { worker_->enqueue(*this, HostFunction{function, user_data}); }

bool Stream::is_empty() const {
  const std::lock_guard lock(worker_->mutex());
  return items_.empty();
}

Result<void> Stream::result() const {
  const std::lock_guard lock(worker_->mutex());
  return result_;
}

Result<void> Stream::synchronize() {
  if (worker_ != &Worker::of_process())
    return fail(fcclInvalidUsage, "this process is a fork of the one that made the stream: make a new one after fork()");
  worker_->wait_until([this] { return items_.empty(); });
  return result();
}

}  // namespace fccl
