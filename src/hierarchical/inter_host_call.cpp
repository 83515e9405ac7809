// Exchanges entries and small payloads, then runs the plan executor.
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

InterHostCall::InterHostCall(std::unique_ptr<WireLane> lane) : lane_(std::move(lane)), entries_(*lane_) {}

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
  entered_ = read_ = 1;
  awaited_ = lane_->members() > 1 ? lane_->peer(1) : lane_->me();
  differing_ = -1;
  entries_.begin(task_.call);
  if (task_.steps != nullptr) executor_.emplace(*lane_, entries_, task_);
}

void InterHostCall::poll() {
  if (ended_.load(std::memory_order_relaxed) != 0 || differing_ >= 0) return;
  const bool told = enter();
  lane_->progress();
  if (executor_) {
    if (!executor_->advance(ready_, room())) differing_ = executor_->differing_member();
    awaited_ = executor_->awaited_member();
    received_.store(executor_->received(), std::memory_order_release);
    done_.store(executor_->done(), std::memory_order_release);
  }
  const bool heard = read_entries();
  if (differing_ >= 0) return;
  if (!executor_ && heard && received_.load(std::memory_order_relaxed) < task_.slices() && ready_ >= task_.slices()) deliver();
  if (!told || !heard || done_.load(std::memory_order_relaxed) != task_.slices()) return;
  const bool granted = lane_->landing().grant_rest();
  if (!lane_->all_posted()) lane_->progress();
  // A rank that only sends could exit before TCP has delivered: in a call with a root it stays until its peers have taken
  // everything.
  const bool taken = !executor_ || !row().is_rooted() || lane_->all_taken();
  if (granted && taken && lane_->all_posted()) ended_.store(1, std::memory_order_release);
}

// Tells every peer of the call; if the payload travels with the entry, waits for the input first.
bool InterHostCall::enter() {
  if (!executor_ && ready_ < task_.slices()) return false;
  while (entered_ < lane_->members() && enter(lane_->peer(entered_))) ++entered_;
  return entered_ == lane_->members();
}

bool InterHostCall::enter(int member) {
  if (!entries_.may_enter(member).reached()) {
    awaited_ = member;
    return false;
  }
  const size_t bytes = !executor_ && task_.slices() > 0 && row().moves(lane_->me(), member, task_.root)
                           ? gather(chunk_for(member), entries_.payload_for(member))
                           : 0;
  entries_.enter(member, bytes);
  return true;
}

bool InterHostCall::read_entries() {
  for (; read_ < lane_->members(); ++read_) {
    const int member = lane_->peer(read_);
    if (!entries_.has_entered(member)) {
      if (!executor_ || done_.load(std::memory_order_relaxed) == task_.slices()) awaited_ = member;
      return false;
    }
    if (!entries_.agrees(member)) {
      differing_ = member;
      return false;
    }
  }
  return true;
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

// Returns the chunk that this member sends to another: the taker's chunk if there is a block per rank, else its own.
int InterHostCall::chunk_for(int member) const {
  if (task_.input.blocks->chunks() == 1) return 0;
  return row().input == Extent::block_per_rank ? member : lane_->me();
}

int InterHostCall::chunk_from(int member) const {
  if (task_.output.blocks->chunks() == 1) return 0;
  return row().input == Extent::block_per_rank && !row().has_pairs() ? lane_->me() : member;
}

size_t InterHostCall::gather(int chunk, std::byte* into) const {
  const size_t element = row().reduces ? task_.partial_bytes : task_.element_bytes;
  std::byte* end = into;
  int place = task_.input.blocks->begin[chunk];
  for (const int block : task_.input.blocks->of(chunk)) {
    const size_t bytes = task_.input.elements_of(block, 0) * element;
    copy_bytes(end, task_.input.at(block, place++, 0), bytes);
    end += bytes;
  }
  return static_cast<size_t>(end - into);
}

// Copies a peer's payload to its place in the output.
void InterHostCall::take(int member) {
  if (!row().moves(member, lane_->me(), task_.root)) return;
  const int chunk = chunk_from(member);
  const std::byte* from = entries_.payload_of(member).data();
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
                                                     : entries_.payload_of(member).data() + offset;
    if (elements > 0)
      task_.total(task_.output.at(block, place, 0), lane_->sources.data(), lane_->members(), elements, &task_.divisor);
    offset += elements * task_.partial_bytes;
    ++place;
  }
}

int InterHostCall::awaited_rank() const { return lane_->rank_of(awaited_); }

int InterHostCall::differing_rank() const { return differing_ < 0 ? -1 : lane_->rank_of(differing_); }

CallInFull InterHostCall::call_of(int rank) const {
  for (int i = 1; i < lane_->members(); ++i)
    if (lane_->rank_of(lane_->peer(i)) == rank) return entries_.call_of(lane_->peer(i));
  return {};
}

}  // namespace fccl::core
