// Waits of a send or a receive, and its outcome.
#include "transfers/issued_transfer.h"

#include "health/control.h"
#include "transfers/transfer_lane.h"

namespace fccl::core {

void IssuedTransfer::queue() { around_.lane.issue(operation_); }

Result<Advance> IssuedTransfer::advance(bool judges, bool warns) {
  auto progress = operation_.has_ended() ? Result<Advance>(Advance::done) : step();
  if (judges && progress && *progress == Advance::none)
    if (auto looked = look(warns); !looked) progress = fail(std::move(looked).error());
  return conclude_step(std::move(progress));
}

// Starts it, or returns whether it has moved.
Result<Advance> IssuedTransfer::step() {
  if (!operation_.has_started) {
    FCCL_TRY_ASSIGN(const auto started, start());
    return started ? Advance::some : Advance::none;
  }
  const uint64_t steps = operation_.steps.load(std::memory_order_acquire);
  if (steps == seen_) return Advance::none;
  seen_ = steps;
  return Advance::some;
}

Result<Advance> IssuedTransfer::conclude_step(Result<Advance> progress) {
  if (!progress) return fail(end(fail(std::move(progress).error())).error());
  if (!operation_.has_ended()) return progress;
  FCCL_TRY(end(conclude()));
  return Advance::done;
}

// Nothing starts on a failed communicator.
Result<bool> IssuedTransfer::start() {
  if (around_.control.failures.has_failed())
    if (auto failed = around_.control.failures.first()) return fail(std::move(*failed));
  return around_.lane.start(operation_);
}

Result<void> IssuedTransfer::conclude() {
  if (!operation_.differs) return {};
  const int source = operation_.other.load(std::memory_order_relaxed);
  return fail(around_.control.failures.raise(around_.control.calls.difference(operation_.transfer, source, operation_.theirs)));
}

Result<void> IssuedTransfer::end(Result<void> result) {
  if (!result) around_.lane.withdraw(operation_);
  is_over_ = true;
  if (wait_) around_.control.judge.end_wait(*wait_);
  return result;
}

void IssuedTransfer::catch_up(void* lane) { static_cast<TransferLane*>(lane)->catch_up(); }

Result<void> IssuedTransfer::look(bool warns) {
  TransferLane& lane = around_.lane;
  if (!wait_) wait_ = std::make_unique<Wait>(operation_.transfer, around_.timeout, Poll{&IssuedTransfer::catch_up, &lane});
  wait_->warns = warns;
  return around_.control.judge.look(*wait_, {&operation_.steps, seen_ + 1, other()}, lane.network_failure_of(other()));
}

}  // namespace fccl::core
