// The two cursors of an exchange.
#include "wire/exchange.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/copy.h"

namespace fccl {
namespace {

using plan::Kind;
using plan::Space;
using plan::Step;

constexpr size_t kUnit = 64;  // a slice is a multiple of it, so of every element

size_t rounded_up(size_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

size_t piece_of(const WireTask& task, size_t slot_bytes) {
  int most = 1;
  for (const Step& step : *task.steps) most = std::max(most, step.count);
  const size_t wanted = rounded_up(task.bytes_of(0) / static_cast<size_t>(task.least_slices) + 1);
  return std::min(wanted, slot_bytes / static_cast<size_t>(most) / kUnit * kUnit);
}

}  // namespace

Exchange::Exchange(WireLane& lane, const WireTask& task)
    : lane_(lane),
      task_(task),
      steps_(*task.steps),
      piece_(piece_of(task, lane.slot_bytes())),
      slices_((task.bytes_of(0) + piece_ - 1) / piece_),
      awaited_(lane.members() > 1 ? lane.peer(1) : lane.me()) {
  check(piece_ > 0, "a slot holds a slice of every chunk of a message");
  std::fill(lane.holds.begin(), lane.holds.end(), false);
  find(sending_, true);
  find(receiving_, false);
}

bool Exchange::advance(uint64_t ready) {
  const uint64_t end = std::min(slices_, ready);
  bool moved = true;
  while (moved && outcome_.agreed()) {
    moved = false;
    if (sending_.slice < end) moved |= send_one();
    if (receiving_.slice < end) moved |= receive_one();
    lane_.grant();
    lane_.progress();
  }
  const bool all_entered = read_entries();
  if (!outcome_.agreed()) return true;
  if (sending_.slice < end && sending_.step < steps_.size() && lane_.has_failed(steps_[sending_.step].peer))
    awaited_ = steps_[sending_.step].peer;
  if (receiving_.slice != slices_ || sending_.slice != slices_ || !all_entered) return false;
  const bool told = lane_.grant_rest();
  lane_.progress();
  return told && lane_.all_posted();
}

bool Exchange::send_one() {
  if (sending_.step == steps_.size()) {
    sending_ = {sending_.slice + 1, 0};
  } else {
    const Step& step = steps_[sending_.step];
    const size_t bytes = message_bytes(step, sending_.slice);
    if (bytes > 0) {
      if (!is_done(step.after)) return false;
      awaited_ = step.peer;
      if (!lane_.can_send(step.peer, bytes) || !stage(step)) return false;
      lane_.send(step.peer, bytes);
    }
    ++sending_.step;
  }
  find(sending_, true);
  return true;
}

bool Exchange::receive_one() {
  copy_own();
  if (receiving_.step == steps_.size()) {
    receiving_ = {receiving_.slice + 1, 0};
  } else {
    const Step& step = steps_[receiving_.step];
    const bool done = step.kind == Kind::add ? add(step) : receive(step);
    if (!done) return false;
    ++receiving_.step;
  }
  find(receiving_, false);
  return true;
}

// Nothing of a peer is used before it is known to have made the same call.
bool Exchange::receive(const Step& step) {
  const size_t bytes = message_bytes(step, receiving_.slice);
  if (bytes == 0) return true;
  awaited_ = step.peer;
  if (!lane_.has_entered(step.peer) || !agrees(step.peer) || !lane_.has_arrived(step.peer, bytes)) return false;
  const std::byte* landing = lane_.landing(step.peer);
  if (step.here.space == Space::parts) {
    check(step.here.index == step.peer, "parts come from the member whose they are");
    lane_.sources[step.peer] = landing;
    lane_.holds[step.peer] = true;
    lane_.receive(step.peer, bytes);
    return true;
  }
  for (int i = 0; i < step.count; ++i) {
    const int chunk = chunk_of(step, i);
    const size_t length = slice_bytes(chunk, receiving_.slice);
    copy_bytes(place(task_.output, chunk, receiving_.slice), landing, length);
    landing += length;
  }
  lane_.receive(step.peer, bytes);
  lane_.consume(step.peer);
  return true;
}

// Also waits for the sends told before it, since the sum may be written over what they read.
bool Exchange::add(const Step& step) {
  const uint64_t slice = receiving_.slice;
  if (sending_.slice == slice && sending_.step < receiving_.step) return false;
  const size_t bytes = slice_bytes(step.here.index, slice);
  if (bytes == 0) return true;
  const Signature& signature = task_.call.signature;
  lane_.sources[lane_.me()] = place(task_.input, step.here.index, slice);
  if (signature.op == ReduceOp::premul_sum)
    for (int member = 0; member < lane_.members(); ++member) lane_.scalars[member] = lane_.call_of(member).scalar;
  task_.reduce(place(task_.output, step.here.index, slice), lane_.sources.data(), lane_.members(),
               bytes / size_of(signature.dtype), lane_.scalars.data());
  for (int member = 0; member < lane_.members(); ++member)
    if (lane_.holds[member]) {
      lane_.holds[member] = false;
      lane_.consume(member);
    }
  return true;
}

bool Exchange::read_entries() {
  for (; entries_read_ < lane_.members(); ++entries_read_) {
    const int member = lane_.peer(entries_read_);
    if (!lane_.has_entered(member)) {
      if (receiving_.slice == slices_ && sending_.slice == slices_) awaited_ = member;
      return false;
    }
    if (!agrees(member)) return false;
  }
  return true;
}

bool Exchange::agrees(int member) {
  if (!lane_.agrees(member)) outcome_ = {lane_.rank_of(member)};
  return outcome_.agreed();
}

// A message that goes to several peers is staged once.
bool Exchange::stage(const Step& step) {
  const uint64_t slice = sending_.slice;
  if (staged_ != nullptr && staged_slice_ == slice && staged_->here == step.here && staged_->count == step.count &&
      staged_->after == step.after)
    return true;
  std::byte* to = lane_.take_stage();
  if (to == nullptr) return false;
  check(step.here.space == Space::data || step.after == 0, "parts are sent by the member whose they are");
  const Chunks& from = step.after == 0 ? task_.input : task_.output;
  for (int i = 0; i < step.count; ++i) {
    const int chunk = chunk_of(step, i);
    const size_t length = slice_bytes(chunk, slice);
    copy_bytes(to, place(from, chunk, slice), length);
    to += length;
  }
  staged_ = &step;
  staged_slice_ = slice;
  return true;
}

void Exchange::copy_own() {
  if (copied_ > receiving_.slice) return;
  for (int i = 0; i < task_.copied; ++i) {
    const int chunk = (task_.copied_first + i) % lane_.members();
    if (const size_t length = slice_bytes(chunk, copied_); length > 0)
      copy_bytes(place(task_.output, chunk, copied_), place(task_.input, chunk, copied_), length);
  }
  ++copied_;
}

void Exchange::find(Cursor& cursor, bool sends) const {
  while (cursor.step < steps_.size() && (steps_[cursor.step].kind == Kind::send) != sends) ++cursor.step;
}

bool Exchange::is_done(int steps) const {
  return receiving_.slice > sending_.slice ||
         (receiving_.slice == sending_.slice && receiving_.step >= static_cast<size_t>(steps));
}

// Both ends know it: what is sent from parts or put there is of the chunk that is added.
int Exchange::chunk_of(const Step& step, int i) const {
  const plan::Slot& slot = step.here.space == Space::data ? step.here : step.there;
  return slot.space == Space::data ? (slot.index + i) % lane_.members() : 0;
}

size_t Exchange::slice_bytes(int chunk, uint64_t slice) const {
  const size_t total = task_.bytes_of(chunk);
  const size_t begin = slice * piece_;
  return begin < total ? std::min(piece_, total - begin) : 0;
}

size_t Exchange::message_bytes(const Step& step, uint64_t slice) const {
  size_t bytes = 0;
  for (int i = 0; i < step.count; ++i) bytes += slice_bytes(chunk_of(step, i), slice);
  return bytes;
}

}  // namespace fccl
