// Waits at the gate before each sub-call, and releases the GPU after it.
#include "operations/bounced_call.h"

#include <utility>

#include "health/control.h"
#include "operations/lane_queue.h"
#include "segment/lane_board.h"

namespace fccl::core {
namespace {

// Yielding time while only the GPU is awaited: the GPU cannot wake the worker, which has to poll.
constexpr std::chrono::microseconds kYieldForGpu{1000};

}  // namespace

BouncedCall::BouncedCall(const CallContext& around, LaneQueue& queue, const Issued& issued, const Program& program)
    : around_(around),
      queue_(queue),
      issued_(issued),
      program_(program),
      first_ticket_(queue.take_tickets(issued.calls.count())) {}

std::chrono::microseconds BouncedCall::yielding() const { return sub_call_ ? sub_call_->yielding() : kYieldForGpu; }

Result<Advance> BouncedCall::advance() {
  if (!sub_call_) {
    const Result<Advance> come = await_gpu();
    if (!come || *come == Advance::none) return come;
  }
  Result<Advance> progress = sub_call_->advance();
  if (!progress) return fail(give_up(std::move(progress).error()));
  return *progress == Advance::done ? finish_sub_call() : progress;
}

Result<Advance> BouncedCall::await_gpu() {
  const bool has_turn = queue_.finished.load(std::memory_order_acquire) == first_ticket_ + part_;
  if (around_.control.failures.has_failed()) {
    release_permanently();
    if (!has_turn) return Advance::none;
    return fail(give_up(around_.control.failures.first().value_or(Error{})));
  }
  if (!has_turn || !has_come(program_.lane.words().ready, number())) return Advance::none;
  begin();
  return Advance::some;
}

void BouncedCall::begin() {
  around_.control.calls.say_begun(lane_of(issued_.task.call.signature.collective), issued_.task.number);
  if (program_.brings_scalar && part_ == 0)
    issued_.task.call.scalar = program_.lane.memory().scalar(issued_.task.call.signature.dtype);
  Task task = issued_.task;
  task.call = issued_.calls.sub_call(part_, program_.lane.memory().buffer(number()));
  task.call.scalar = issued_.task.call.scalar;
  const bool is_last = part_ + 1 == issued_.calls.count();
  sub_call_.emplace(around_, queue_, task, issued_.timeout, IssuedCall::Ticket{first_ticket_ + part_, is_last ? 1U : 0U});
}

Result<Advance> BouncedCall::finish_sub_call() {
  sub_call_->count_copied();
  sub_call_.reset();
  release_to_device(program_.lane.words().finished, number());
  return ++part_ == issued_.calls.count() ? Advance::done : Advance::some;
}

// Tickets of sub-calls that will not run are finished, too.
Error BouncedCall::give_up(Error error) {
  sub_call_.reset();
  release_permanently();
  queue_.finished.store(first_ticket_ + issued_.calls.count(), std::memory_order_release);
  return error;
}

// Every later gate of this call's program is open from now on.
void BouncedCall::release_permanently() {
  release_to_device(program_.lane.words().finished, program_.first_number + issued_.calls.count() - 1 + kFarAhead);
}

}  // namespace fccl::core
