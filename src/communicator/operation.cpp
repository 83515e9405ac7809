// From the turn on the lane to the count in the statistics.
#include "communicator/operation.h"

#include <algorithm>

namespace fccl {
namespace {

constexpr std::chrono::milliseconds kLookEvery{1};

// nccl-tests' size: the larger of the two buffers.
size_t size_of_call(const Signature& s, int ranks) {
  const bool many_blocks = s.collective == fcclCollAllGather || s.collective == fcclCollReduceScatter ||
                           s.collective == fcclCollGather || s.collective == fcclCollScatter;
  return s.bytes() * (many_blocks ? ranks : 1);
}

}  // namespace

// On a failed communicator nothing starts; the lane's turn passes all the same.
bool Operation::begin() {
  if (around_.control.has_failed())
    if (auto failed = around_.control.failure()) {
      end(fail(std::move(*failed)));
      return false;
    }
  path_ = choose(task_.call.signature, queue_.lane.shape());
  if (path_ == Path::ring) began_ = Clock::now();
  phase_ = start(path_, queue_.lane, task_);
  return true;
}

Result<void> Operation::run() {
  if (begin()) end(run_to_end(phase_, {&Operation::look, this}, around_.crowded));
  return std::move(result_);
}

bool Operation::advance() {
  moved_ = false;
  if (!running_) {
    if (queue_.finished.load(std::memory_order_acquire) != ticket_) return false;
    running_ = moved_ = true;
    if (!begin()) return true;
  } else if (!phase_.awaited().reached()) {
    const Clock::time_point now = Clock::now();
    if (now < next_look_) return false;
    next_look_ = now + kLookEvery;
    if (auto looked = around_.control.look(wait_, phase_.awaited()); !looked) {
      end(fail(std::move(looked).error()));
      return true;
    }
    return false;
  }
  moved_ = true;
  if (!phase_.resume()) return false;
  end(phase_.outcome());
  return true;
}

void Operation::end(Result<Outcome> outcome) {
  phase_.end();
  if (!outcome) {
    result_ = fail(std::move(outcome).error());
  } else if (!outcome->agreed()) {
    result_ = fail(around_.control.raise_mismatch(task_, outcome->differing_rank));
  } else if (!task_.call.signature.internal) {
    const Signature& s = task_.call.signature;
    const double seconds = path_ == Path::ring ? std::chrono::duration<double>(Clock::now() - began_).count() : 0;
    around_.statistics.count(s.collective, size_of_call(s, queue_.lane.ranks()), seconds);
  }
  queue_.finished.store(ticket_ + 1, std::memory_order_release);
}

Result<void> Operation::look(void* operation, const Awaited& awaited) {
  auto* self = static_cast<Operation*>(operation);
  return self->around_.control.look(self->wait_, awaited);
}

}  // namespace fccl
