// Channel: takes operations and does them.
#include "devices/channel.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

namespace fccl::core::simulated {

namespace {

void sleep_us(int64_t us) { std::this_thread::sleep_for(std::chrono::microseconds(us)); }

}  // namespace

void Patience::look_again_later() {
  if (++looks_ <= 8) {
    std::this_thread::yield();
    return;
  }
  const int64_t us = std::clamp<int64_t>(waited_us_ / 8, 20, 1000);
  waited_us_ += us;
  sleep_us(us);
}

void Progress::wait_until(const std::function<bool()>& come) const {
  for (Patience patience; !is_dead() && !come();) patience.look_again_later();
}

void Turn::show() {
  if (!progress.is_dead()) shadow.land();
  const uint64_t done = queue.done.load(kRelaxed), before = queue.finished.load(kRelaxed);
  if (done == before) return;
  queue.finished.store(done, std::memory_order_release);
  progress.finished.fetch_add(done - before, kRelaxed);
}

void Turn::wait_until(const std::function<bool()>& come) {
  progress.wait_until([&] {
    if (queue.synchronizing.load(kRelaxed) > 0) show();
    return come();
  });
}

Channel::Channel(Progress& progress, uint64_t seed) : progress_(progress), dice_(seed), shadow_(dice_, progress.options) {
  progress_.threads.fetch_add(1, kRelaxed);
  std::thread([this] {
    shadow_.become_of_thread();
    ::prctl(PR_SET_TIMERSLACK, 1000);  // ns; sleeps are short here
    run();
    progress_.threads.fetch_sub(1, std::memory_order_release);
  }).detach();
}

void Channel::put(GpuQueue& queue, Connection& connection, Work work) {
  auto* operation = new Operation;
  operation->queue = &queue;
  operation->connection = &connection;
  operation->work = std::move(work);
  progress_.enqueued.fetch_add(1, kRelaxed);
  queue.enqueued.fetch_add(1, kRelaxed);
  const uint64_t outstanding = queue.outstanding();
  if (outstanding > queue.most_outstanding.load(kRelaxed)) queue.most_outstanding.store(outstanding, kRelaxed);
  const std::scoped_lock hold(progress_.enqueuing);
  operation->place = connection.join();
  operation->handed.store(true, std::memory_order_release);
  pending_.push(operation);
}

void Channel::run() {
  while (UnseenLink* const link = pending_.take()) {
    auto* operation = static_cast<Operation*>(link);
    operation->handed.load(std::memory_order_acquire);
    GpuQueue& queue = *operation->queue;
    Turn turn{progress_, queue, *operation->connection, shadow_};
    progress_.wait_until([&] { return turn.connection.is_first(operation->place); });
    before_operation();
    if (!progress_.is_dead()) operation->work(turn);
    turn.leave();
    delete operation;
    const bool is_last = queue.done.fetch_add(1, kRelaxed) + 1 == queue.enqueued.load(kRelaxed);
    if (is_last || shadow_.is_empty() || queue.synchronizing.load(kRelaxed) > 0) turn.show();
  }
}

void Channel::before_operation() {
  const GpuOptions& options = progress_.options;
  const uint64_t number = progress_.begun.fetch_add(1, kRelaxed) + 1;
  if (options.breaks_at_operation == number) progress_.broken.store(true, kRelaxed);
  if (options.stops_at_operation == number) progress_.stopped.store(true, kRelaxed);
  progress_.wait_until([&] { return !progress_.stopped.load(kRelaxed); });
  if (options.delay_us == 0 || progress_.is_dead()) return;
  if (dice_.per_mille(250)) {
    sleep_us(static_cast<int64_t>(dice_.up_to(static_cast<uint64_t>(options.delay_us))));
  } else if (dice_.per_mille(500)) {
    std::this_thread::yield();
  }
}

}  // namespace fccl::core::simulated
