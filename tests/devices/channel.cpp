// Channel: takes operations and does them.
#include "devices/channel.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
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

Channel::Channel(Progress& progress, uint64_t seed) : progress_(progress), dice_(seed) {
  progress_.threads.fetch_add(1, kRelaxed);
  std::thread([this] {
    ::prctl(PR_SET_TIMERSLACK, 1000);  // ns; sleeps are short here
    run();
    progress_.threads.fetch_sub(1, std::memory_order_release);
  }).detach();
}

void Channel::put(GpuQueue& queue, size_t slots, Work work) {
  auto* operation = new Operation;
  operation->queue = &queue;
  operation->slots = slots;
  operation->work = std::move(work);
  progress_.enqueued.fetch_add(slots, kRelaxed);
  queue.enqueued.fetch_add(slots, kRelaxed);
  const uint64_t outstanding = queue.outstanding();
  if (outstanding > queue.most_outstanding.load(kRelaxed)) queue.most_outstanding.store(outstanding, kRelaxed);
  operation->handed.store(true, std::memory_order_release);
  pending_.push(operation);
}

void Channel::run() {
  while (UnseenLink* const link = pending_.take()) {
    auto* operation = static_cast<Operation*>(link);
    operation->handed.load(std::memory_order_acquire);
    before_operation();
    if (!progress_.is_dead()) operation->work(dice_);
    GpuQueue& queue = *operation->queue;
    const size_t slots = operation->slots;
    delete operation;
    queue.finished.store(queue.finished.load(kRelaxed) + slots, std::memory_order_release);
    progress_.finished.fetch_add(slots, kRelaxed);
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
