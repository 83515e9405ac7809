// Runs the exchange of entries and the plan executor side by side, and delivers what came with the entries.
#include "hierarchical/inter_host_call.h"

#include <algorithm>

#include "kernels/copy.h"
#include "wire/lane.h"

namespace fccl::core {

namespace {

void give_memory(WireSide& side, std::vector<std::byte>& memory) {
  if (!side.buffer.is_staging()) return;
  const size_t bytes = std::min(side.buffer.slices, side.pieces.slices) * side.buffer.slice_bytes;
  if (memory.size() < bytes) memory.resize(bytes);
  side.buffer.base = memory.data();
}

}  // namespace

InterHostCall::InterHostCall(std::unique_ptr<WireLane> lane) : lane_(std::move(lane)), exchange_(*lane_) {}

InterHostCall::~InterHostCall() = default;

// The last call has ended, so polls find nothing to do until begin.
void InterHostCall::prepare(const WireTask& task) {
  executor_.reset();
  task_ = task;
  give_memory(task_.input, staged_input_);
  give_memory(task_.output, staged_output_);
}

void InterHostCall::begin() {
  ready_ = released_ = 0;
  received_.store(0, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  ended_.store(0, std::memory_order_relaxed);
  exchange_.begin(task_, task_.steps == nullptr);
  if (task_.steps != nullptr) executor_.emplace(*lane_, exchange_, task_);
}

void InterHostCall::poll() {
  if (ended_.load(std::memory_order_relaxed) != 0 || exchange_.differing() >= 0) return;
  // Content that travels with the entries must be there first.
  const bool may_tell = executor_ || ready_ >= task_.slices();
  if (may_tell) exchange_.advance();
  lane_->progress();
  if (executor_) {
    executor_->advance(ready_, room());
    received_.store(executor_->received(), std::memory_order_release);
    done_.store(executor_->done(), std::memory_order_release);
  } else if (may_tell) {
    exchange_.advance();
    if (exchange_.has_heard_all() && received_.load(std::memory_order_relaxed) < task_.slices()) deliver();
  }
  if (exchange_.differing() >= 0 || !exchange_.has_told_all() || !exchange_.has_heard_all() ||
      done_.load(std::memory_order_relaxed) != task_.slices())
    return;
  const bool granted = lane_->landing().grant_rest();
  if (!lane_->all_posted()) lane_->progress();
  // A rank that only sends could exit before TCP has delivered: in a call with a root it stays until its peers have taken
  // everything.
  const bool taken = !executor_ || !row().is_rooted() || lane_->still_taking() < 0;
  if (granted && taken && lane_->all_posted()) ended_.store(1, std::memory_order_release);
}

// Returns how many slices have memory for their output.
uint64_t InterHostCall::room() const {
  if (!task_.output.buffer.is_staging()) return task_.slices();
  return (task_.output_is_taken ? released_ : executor_->done()) + task_.output.buffer.slices;
}

// Runs once every member has entered the same call, with its payload.
void InterHostCall::deliver() {
  if (row().reduces) {
    if (row().takes(lane_->me(), task_.root)) reduce();
  } else {
    for (int i = 1; i < lane_->members(); ++i) take(lane_->peer(i));
  }
  received_.store(task_.slices(), std::memory_order_release);
  done_.store(task_.slices(), std::memory_order_release);
}

// Returns the chunk of the output that a member gives: this member's own if there is a block per rank of the input, else its.
int InterHostCall::chunk_from(int member) const {
  if (task_.output.blocks->chunks() == 1) return 0;
  return row().input == Extent::block_per_rank && !row().has_pairs() ? lane_->me() : member;
}

// Copies what a peer gave to its place in the output.
void InterHostCall::take(int member) {
  if (!row().moves(member, lane_->me(), task_.root)) return;
  const int chunk = chunk_from(member);
  const std::byte* from = exchange_.content_of(member);
  int place = task_.output.blocks->begin[chunk];
  for (const int block : task_.output.blocks->of(chunk)) {
    const size_t bytes = task_.output.elements_of(block, 0) * task_.element_bytes;
    copy_bytes(task_.output.at(block, place++, 0), from, bytes);
    from += bytes;
  }
}

void InterHostCall::reduce() {
  const WireSide& side = task_.output;
  const int chunk = side.blocks->chunks() == 1 ? 0 : lane_->me();
  int place = side.blocks->begin[chunk];
  size_t offset = 0;
  for (const int block : side.blocks->of(chunk)) {
    const size_t elements = side.elements_of(block, 0);
    for (int member = 0; member < lane_->members(); ++member)
      lane_->sources[member] = member == lane_->me() ? static_cast<const void*>(task_.input.at(block, place, 0))
                                                     : exchange_.content_of(member) + offset;
    if (elements > 0)
      task_.total(task_.output.at(block, place, 0), lane_->sources.data(), lane_->members(), elements, &task_.divisor);
    offset += elements * task_.partial_bytes;
    ++place;
  }
}

// A plan that moves waits for what it needs. Once it is done, the call waits for the members' entries, and at last for members
// that have not taken all.
int InterHostCall::awaited_rank() const {
  if (executor_ && executor_->done() < task_.slices()) return lane_->rank_of(executor_->awaited_member());
  const bool all_agree = exchange_.has_told_all() && exchange_.has_heard_all();
  const int taker = all_agree ? lane_->still_taking() : -1;
  return lane_->rank_of(taker < 0 ? exchange_.awaited() : taker);
}

int InterHostCall::differing_rank() const { return exchange_.differing() < 0 ? -1 : lane_->rank_of(exchange_.differing()); }

CallInFull InterHostCall::call_of(int rank) const {
  for (int i = 1; i < lane_->members(); ++i)
    if (lane_->rank_of(lane_->peer(i)) == rank) return entries().call_of(lane_->peer(i));
  return {};
}

}  // namespace fccl::core
