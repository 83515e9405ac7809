// The waits of a send or a receive, and what became of it.
#include "operations/issued_transfer.h"

#include <thread>

namespace fccl {
namespace {

constexpr std::chrono::milliseconds kLookAtTransferEvery{1};
// Idle steps from one reading of the clock to the next.
constexpr int kStepsPerClock = 8;
// Looks at once before a wait: about half a millisecond, and the price of one context switch.
constexpr int kTransferTries = 1 << 13;
constexpr int kTransferTriesOversubscribed = 1 << 5;

}  // namespace

Result<void> IssuedTransfer::run() { return end(run_to_end()); }

Result<void> IssuedTransfer::run_to_end() {
  while (!started_) {
    auto started = start();
    if (!started) return fail(std::move(started).error());
    // One that was issued before it on a stream has not come to its turn, and the worker is at that.
    if (!started_) std::this_thread::yield();
  }
  for (int i = around_.oversubscribed ? kTransferTriesOversubscribed : kTransferTries; i > 0 && !operation_.has_ended(); --i) {
    around_.lane.progress();
    pause();
  }
  while (!operation_.has_ended()) {
    seen_ = operation_.steps.load(std::memory_order_acquire);
    FCCL_TRY(
        await(awaited(), {&IssuedTransfer::look, this}, {around_.oversubscribed}, {&IssuedTransfer::progress, &around_.lane}));
  }
  return conclude();
}

Result<Advance> IssuedTransfer::advance() {
  Result<Advance> progress = advance_further();
  if (!progress || *progress == Advance::done)
    if (auto ended = end(progress ? Result<void>{} : fail(progress.error())); !ended) return fail(std::move(ended).error());
  return progress;
}

Result<Advance> IssuedTransfer::advance_further() {
  const bool starts = !started_;
  if (starts) {
    const auto started = start();
    if (!started) return fail(started.error());
    if (!started_) return Advance::none;
  }
  if (!operation_.has_ended()) around_.lane.progress();
  const uint64_t steps = operation_.steps.load(std::memory_order_acquire);
  if (operation_.has_ended()) {
    FCCL_TRY(conclude());
    return Advance::done;
  }
  if (steps != seen_ || starts) {
    seen_ = steps;
    idle_steps_ = 0;
    return Advance::some;
  }
  if (++idle_steps_ % kStepsPerClock != 0) return Advance::none;
  const Clock::time_point now = Clock::now();
  if (now < next_look_) return Advance::none;
  next_look_ = now + kLookAtTransferEvery;
  FCCL_TRY(look(this, awaited()));
  return Advance::none;
}

// On a failed communicator nothing starts.
Result<bool> IssuedTransfer::start() {
  if (around_.control.has_failed())
    if (auto failed = around_.control.failure()) return fail(std::move(*failed));
  started_ = around_.lane.start(operation_);
  return started_;
}

Result<void> IssuedTransfer::conclude() {
  if (!operation_.differs) return {};
  const int source = operation_.other.load(std::memory_order_relaxed);
  return fail(around_.control.raise_difference(operation_.transfer, source, operation_.theirs));
}

Result<void> IssuedTransfer::end(Result<void> result) {
  if (!result) around_.lane.withdraw(operation_);
  around_.lane.count_out();
  return result;
}

Result<void> IssuedTransfer::look(void* transfer, const Awaited& awaited) {
  auto* self = static_cast<IssuedTransfer*>(transfer);
  return self->around_.control.look(self->wait_, awaited, self->around_.lane.network_failure_of(awaited.rank));
}

}  // namespace fccl
