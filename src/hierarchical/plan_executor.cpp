// Advances the sending and the receiving cursor of a plan.
#include "hierarchical/plan_executor.h"

#include <algorithm>

#include "base/check.h"
#include "hierarchical/entry_exchange.h"
#include "kernels/copy.h"
#include "wire/lane.h"

namespace fccl::core {

using plan::Kind;
using plan::Space;
using plan::Step;

// Walks the pieces of a step's message in a slice, in their order, and tells where they lie in a buffer.
class PlanExecutor::Walk {
 public:
  Walk(const PlanExecutor& executor, const Step& step, const WireSide& side, uint64_t slice)
      : executor_(executor), step_(step), side_(side), slice_(slice) {}

  // Moves to the next piece; false after the last one.
  bool next() {
    const WireTask& task = executor_.task_;
    for (; chunk_ < step_.count; ++chunk_, block_ = 0) {
      const int chunk = executor_.chunk_of(step_, chunk_);
      const std::span<const int> blocks = side_.blocks->of(chunk);
      while (block_ < blocks.size()) {
        const int place = side_.blocks->begin[chunk] + static_cast<int>(block_);
        const int block = blocks[block_++];
        const size_t elements = side_.elements_of(block, slice_);
        if (elements == 0) continue;
        at = side_.at(block, place, slice_);
        bytes = elements * (carries_partials(step_) ? task.partial_bytes : task.element_bytes);
        return true;
      }
    }
    return false;
  }

  std::byte* at = nullptr;
  size_t bytes = 0;

 private:
  const PlanExecutor& executor_;
  const Step& step_;
  const WireSide& side_;
  uint64_t slice_;
  int chunk_ = 0;     // index among the step's chunks
  size_t block_ = 0;  // index among the chunk's blocks
};

PlanExecutor::PlanExecutor(WireLane& lane, EntryExchange& exchange, const WireTask& task)
    : lane_(lane),
      exchange_(exchange),
      task_(task),
      steps_(*task.steps),
      awaited_(lane.members() > 1 ? lane.peer(1) : lane.me()) {
  std::fill(lane.holds.begin(), lane.holds.end(), nullptr);
  find(sending_, true);
  find(receiving_, false);
}

void PlanExecutor::advance(uint64_t ready, uint64_t room) {
  const uint64_t slices = task_.slices();
  bool moved = true;
  while (moved && exchange_.differing() < 0) {
    moved = false;
    if (sending_.slice < std::min(slices, ready)) moved |= send_one();
    if (receiving_.slice < std::min(slices, room)) moved |= receive_one(ready);
    lane_.landing().grant();
    lane_.progress();
    exchange_.advance();
  }
  if (sending_.slice < slices && sending_.step < steps_.size() && lane_.has_failed(steps_[sending_.step].peer))
    awaited_ = steps_[sending_.step].peer;
}

bool PlanExecutor::send_one() {
  if (sending_.step == steps_.size()) {
    sending_ = {sending_.slice + 1, 0};
  } else {
    const Step& step = steps_[sending_.step];
    const size_t bytes = message_bytes(step, sending_.slice);
    if (bytes > 0) {
      if (!is_done(step.after)) return false;
      awaited_ = step.peer;
      if (!lane_.can_send(step.peer, bytes) || !fill_stage(step)) return false;
      lane_.send(step.peer, bytes);
    }
    ++sending_.step;
  }
  find(sending_, true);
  return true;
}

bool PlanExecutor::receive_one(uint64_t ready) {
  if (receiving_.step == steps_.size()) {
    receiving_ = {receiving_.slice + 1, 0};
  } else {
    const Step& step = steps_[receiving_.step];
    const bool done = step.kind == Kind::add ? add(step, ready) : receive(step);
    if (!done) return false;
    ++receiving_.step;
  }
  find(receiving_, false);
  return true;
}

// No byte of a peer is used before the peer is known to have made the same call.
bool PlanExecutor::receive(const Step& step) {
  const uint64_t slice = receiving_.slice;
  const size_t bytes = message_bytes(step, slice);
  if (bytes == 0) return true;
  awaited_ = step.peer;
  if (!exchange_.knows(step.peer)) {
    awaited_ = exchange_.awaited();
    return false;
  }
  if (!lane_.landing().has_arrived(step.peer, bytes)) return false;
  const std::byte* landing = lane_.landing().message(step.peer);
  if (step.here.space == Space::parts) {
    check(step.here.index == step.peer, "parts come from the member whose they are");
    lane_.holds[step.peer] = landing;
    lane_.landing().receive(step.peer, bytes);
    return true;
  }
  for (Walk piece(*this, step, task_.output, slice); piece.next(); landing += piece.bytes)
    task_.put(piece.at, landing, piece.bytes);
  lane_.landing().receive(step.peer, bytes);
  lane_.landing().consume(step.peer);
  return true;
}

// It also waits for earlier sends of the slice, since the sum may overwrite what they read.
bool PlanExecutor::add(const Step& step, uint64_t ready) {
  const uint64_t slice = receiving_.slice;
  if (slice >= ready || (sending_.slice == slice && sending_.step < receiving_.step)) return false;
  const int chunk = step.here.index;
  const std::span<const int> blocks = task_.output.blocks->of(chunk);
  size_t offset = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const int place = task_.output.blocks->begin[chunk] + static_cast<int>(i);
    const size_t elements = task_.output.elements_of(blocks[i], slice);
    if (elements == 0) continue;
    for (int member = 0; member < lane_.members(); ++member)
      lane_.sources[member] = member == lane_.me() ? task_.input.at(blocks[i], place, slice) : lane_.holds[member] + offset;
    task_.total(task_.output.at(blocks[i], place, slice), lane_.sources.data(), lane_.members(), elements, &task_.divisor);
    offset += elements * task_.partial_bytes;
  }
  for (int member = 0; member < lane_.members(); ++member)
    if (lane_.holds[member] != nullptr) {
      lane_.holds[member] = nullptr;
      lane_.landing().consume(member);
    }
  return true;
}

// A message that goes to several peers is staged only once.
bool PlanExecutor::fill_stage(const Step& step) {
  const uint64_t slice = sending_.slice;
  if (staged_ != nullptr && staged_slice_ == slice && staged_->here == step.here && staged_->count == step.count &&
      staged_->after == step.after)
    return true;
  std::byte* to = lane_.take_stage();
  if (to == nullptr) return false;
  check(step.here.space == Space::data || step.after == 0, "parts and what is given are sent by the member whose they are");
  for (Walk piece(*this, step, side_of(step), slice); piece.next(); to += piece.bytes) copy_bytes(to, piece.at, piece.bytes);
  staged_ = &step;
  staged_slice_ = slice;
  return true;
}

void PlanExecutor::find(Cursor& cursor, bool sends) const {
  while (cursor.step < steps_.size() && (steps_[cursor.step].kind == Kind::send) != sends) ++cursor.step;
}

// A send that depends on no receive goes out however far receiving has fallen behind.
bool PlanExecutor::is_done(int steps) const {
  return steps == 0 || receiving_.slice > sending_.slice ||
         (receiving_.slice == sending_.slice && receiving_.step >= static_cast<size_t>(steps));
}

// True if the message holds partial sums, which lie in parts at the receiver.
bool PlanExecutor::carries_partials(const Step& step) {
  return (step.kind == Kind::send ? step.there : step.here).space == Space::parts;
}

// Returns the side that a send reads, or a receive writes.
const WireSide& PlanExecutor::side_of(const Step& step) const {
  return step.kind == Kind::send && step.after == 0 ? task_.input : task_.output;
}

// Returns a chunk's number on its side. Sender and receiver compute the same one: partial sums belong to the chunk that they
// are added to.
int PlanExecutor::chunk_of(const Step& step, int i) const {
  const plan::Slot& slot = step.here.space == Space::parts ? step.there : step.here;
  return slot.space == Space::parts ? 0 : (slot.index + i) % side_of(step).blocks->chunks();
}

size_t PlanExecutor::message_bytes(const Step& step, uint64_t slice) const {
  size_t elements = 0;
  for (int i = 0; i < step.count; ++i) elements += side_of(step).elements_of_chunk(chunk_of(step, i), slice);
  return elements * (carries_partials(step) ? task_.partial_bytes : task_.element_bytes);
}

}  // namespace fccl::core
