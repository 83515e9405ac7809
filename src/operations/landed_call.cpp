// Enters the call by a call that moves nothing, then compares words and counters until all ranks have taken everything.
#include "operations/landed_call.h"

#include <algorithm>
#include <utility>

#include "health/control.h"
#include "metrics/statistics.h"
#include "operations/lane_queue.h"
#include "segment/lane_board.h"

namespace fccl::core {
namespace {

// The number of the call by which the ranks enter: no sub-call has it, nor the meetings before and behind a lane's set-up.
constexpr uint32_t kEntry = UINT32_MAX - 2;
// Tickets of the lane: the entry's, and that of the steps.
constexpr uint64_t kTickets = 2;
// Neither the GPU nor a peer's worker can wake this one, which has to poll.
constexpr std::chrono::microseconds kYield{1000};
constexpr std::chrono::milliseconds kLookAtPeersEvery{1};

}  // namespace

LandedCall::LandedCall(const CallContext& around, LaneQueue& queue, const Task& task, std::chrono::milliseconds timeout,
                       const Program& program)
    : around_(around),
      queue_(queue),
      task_(task),
      program_(program),
      wait_(task_, timeout),
      first_ticket_(queue.take_tickets(kTickets)) {}

std::chrono::microseconds LandedCall::yielding() const { return entry_ ? entry_->yielding() : kYield; }

Result<Advance> LandedCall::advance() {
  switch (state_) {
    case State::awaits_gpu:
      return await_gpu();
    case State::enters:
      return enter();
    case State::steps:
      break;
  }
  return pass_on();
}

Result<Advance> LandedCall::await_gpu() {
  const bool has_turn = queue_.finished.load(std::memory_order_acquire) == first_ticket_;
  if (around_.control.failures.has_failed()) {
    release_permanently();
    if (!has_turn) return Advance::none;
    return fail(give_up(around_.control.failures.first().value_or(Error{})));
  }
  if (!has_turn || !has_come(program_.lane.words().ready, program_.number)) return Advance::none;
  state_ = State::enters;
  began_ = Clock::now();
  around_.control.calls.say_begun(lane_of(task_.call.signature.collective), task_.number);
  if (program_.brings_scalar) task_.call.scalar = program_.lane.memory().scalar(task_.call.signature.dtype);
  Task entry = task_;
  Signature& s = entry.call.signature;
  s.elsewhere = std::exchange(s.count, 0);
  s.part = kEntry;
  entry_.emplace(around_, queue_, entry, wait_.timeout, IssuedCall::Ticket{first_ticket_, 0});
  return Advance::some;
}

Result<Advance> LandedCall::enter() {
  Result<Advance> progress = entry_->advance();
  if (!progress) return fail(give_up(std::move(progress).error()));
  if (*progress != Advance::done) return progress;
  entry_.reset();
  take_factors();
  first_slice_ = queue_.lane.slices();
  state_ = State::steps;
  return Advance::some;
}

// The GPU adds behind the word that says that all ranks have filled its slots, and has done so before its next call enters.
void LandedCall::take_factors() {
  if (task_.call.signature.op != ReduceOp::premul_sum) return;
  const Lane& lane = queue_.lane;
  for (int rank = 0; rank < lane.ranks(); ++rank)
    program_.lane.words().factors.at(static_cast<size_t>(rank)) = lane.record_of(rank).scalar;
}

// Steps of this call among all that were counted: counters may be behind its first step, and ahead of its last one.
uint64_t LandedCall::steps_in(uint64_t counted, uint64_t first) const {
  const auto steps = static_cast<int64_t>(counted - first);
  return steps <= 0 ? 0 : std::min(static_cast<uint64_t>(steps), program_.steps);
}

// Tells the peers what the GPU has done. Returns false if there is no news.
bool LandedCall::hear_own(Stage& stage, const DeviceWord& word, Counter& board) const {
  const uint64_t steps = steps_in(word.load(std::memory_order_acquire), program_.first_step);
  if (steps == stage.mine) return false;
  stage.mine = steps;
  board.publish(first_slice_ + steps);
  return true;
}

// Tells the GPU what all ranks have done. Returns false if there is no news.
bool LandedCall::hear_all(Stage& stage, Awaited (Lane::*counter)(int, uint64_t) const, DeviceWord& word) const {
  const Lane& lane = queue_.lane;
  uint64_t least = stage.mine;
  for (int i = 1; i < lane.ranks() && least > stage.all; ++i) {
    const Awaited peer = (lane.*counter)(lane.peer(i), 0);
    least = std::min(least, steps_in(peer.where->load(std::memory_order_acquire), first_slice_));
  }
  if (least <= stage.all) return false;
  stage.all = least;
  release_to_device(word, program_.first_step + least);
  return true;
}

Result<Advance> LandedCall::pass_on() {
  LaneBoard& board = queue_.lane.my_board();
  StepWords& words = program_.lane.words().steps;
  bool moved = hear_own(done_, words.done, board.published);
  moved |= hear_own(taken_, words.taken, board.drained);
  moved |= hear_all(done_, &Lane::published, words.all_done);
  moved |= hear_all(taken_, &Lane::drained, words.all_taken);
  if (taken_.all == program_.steps) return finish();
  if (moved) return Advance::some;
  return look();
}

// The peer for which the GPU waits in this stage; rank -1 if it waits for none.
Awaited LandedCall::late_peer(const Stage& stage, Awaited (Lane::*counter)(int, uint64_t) const) const {
  const Lane& lane = queue_.lane;
  if (stage.mine == stage.all) return {};
  for (int i = 1; i < lane.ranks(); ++i) {
    const Awaited peer = (lane.*counter)(lane.peer(i), first_slice_ + stage.all + 1);
    if (!peer.reached()) return peer;
  }
  return {};
}

// A GPU that waits for no peer has no deadline here: its peers wait for it.
Result<Advance> LandedCall::look() {
  const Clock::time_point now = Clock::now();
  if (now < next_look_) return Advance::none;
  next_look_ = now + kLookAtPeersEvery;
  Awaited peer = late_peer(done_, &Lane::published);
  if (peer.where == nullptr) peer = late_peer(taken_, &Lane::drained);
  if (peer.where != nullptr) {
    const Result<void> looked = around_.control.judge.look(wait_, peer);
    if (!looked) return fail(give_up(looked.error()));
  } else if (around_.control.failures.has_failed()) {
    return fail(give_up(around_.control.failures.first().value_or(Error{})));
  }
  return Advance::none;
}

Advance LandedCall::finish() {
  queue_.lane.count_slices(program_.steps);
  around_.control.judge.end_wait(wait_);
  around_.statistics.count({.collective = task_.call.signature.collective,
                            .path = program_.path,
                            .bytes = task_.call.larger_buffer(queue_.ranks()),
                            .nanoseconds = static_cast<uint64_t>((Clock::now() - began_).count())});
  queue_.finished.store(first_ticket_ + kTickets, std::memory_order_release);
  return Advance::done;
}

Error LandedCall::give_up(Error error) {
  entry_.reset();
  around_.control.judge.end_wait(wait_);
  release_permanently();
  queue_.finished.store(first_ticket_ + kTickets, std::memory_order_release);
  return error;
}

// Every wait of this call's program is over from now on.
void LandedCall::release_permanently() {
  const uint64_t ahead = program_.first_step + program_.steps + kFarAhead;
  release_to_device(program_.lane.words().steps.all_done, ahead);
  release_to_device(program_.lane.words().steps.all_taken, ahead);
}

}  // namespace fccl::core
