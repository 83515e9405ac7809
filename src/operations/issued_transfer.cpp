// The waits of a send or a receive, and what became of it.
#include "operations/issued_transfer.h"

namespace fccl {
namespace {

constexpr std::chrono::milliseconds kLookAtTransferEvery{1};
// Idle steps from one reading of the clock to the next.
constexpr int kStepsPerClock = 8;

}  // namespace

Result<Advance> IssuedTransfer::advance() {
  if (!operation_.has_ended()) around_.lane.progress();
  return advance_behind_progress();
}

Result<Advance> IssuedTransfer::advance_behind_progress() {
  if (!operation_.has_ended()) {
    auto progress = look_at_steps();
    if (!progress) return fail(end(fail(std::move(progress).error())).error());
    if (!operation_.has_ended()) return progress;
  }
  FCCL_TRY(end(conclude()));
  return Advance::done;
}

Result<Advance> IssuedTransfer::look_at_steps() {
  if (!started_) {
    const auto started = start();
    if (!started) return fail(started.error());
    return *started ? Advance::some : Advance::none;
  }
  const uint64_t steps = operation_.steps.load(std::memory_order_acquire);
  if (steps != seen_) {
    seen_ = steps;
    idle_steps_ = 0;
    return Advance::some;
  }
  if (++idle_steps_ % kStepsPerClock != 0) return Advance::none;
  const Clock::time_point now = Clock::now();
  if (now < next_look_) return Advance::none;
  next_look_ = now + kLookAtTransferEvery;
  FCCL_TRY(look());
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
  is_over_ = true;
  if (wait_) around_.control.end_wait(*wait_);
  return result;
}

Result<void> IssuedTransfer::look() {
  TransferLane& lane = around_.lane;
  if (!wait_) wait_ = std::make_unique<Wait>(operation_.transfer, around_.timeout, Poll{&IssuedTransfer::catch_up, &lane});
  const int other = operation_.other.load(std::memory_order_relaxed);
  return around_.control.look(*wait_, {&operation_.steps, seen_ + 1, other}, lane.network_failure_of(other));
}

}  // namespace fccl
