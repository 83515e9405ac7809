// StepProgram: the entries of one call by landing slots on its lane's queue, between the fork and the call's end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/landing.h"
#include "device/lane.h"
#include "device/program.h"
#include "landing/steps.h"

namespace fccl::core {

// The order of a call's steps: each is produced LandingSlots::kAhead steps before it is consumed. `produce` and `consume`
// return a Result<void>.
template <class Produce, class Consume>
Result<void> in_order_of_steps(uint64_t count, Produce produce, Consume consume) {
  for (uint64_t i = 0; i < count + LandingSlots::kAhead; ++i) {
    if (i < count) FCCL_TRY(produce(i));
    if (i >= LandingSlots::kAhead) FCCL_TRY(consume(i - LandingSlots::kAhead));
  }
  return {};
}

// With q steps before this call on the lane:
//   write ready
//   produce s:  wait for all_taken q+s+1-slots; copy in; write done q+s+1
//   consume s:  wait for all_done q+s+1; copy out of each peer's slot, the next rank's first; write taken q+s+1
//   write drained
// In the order of a queue no wait's satisfier stands behind it on any rank: all_taken asks for steps that this rank has
// consumed, and all_done for those that it has produced. It lives, is forked and ended as a Program is.
class StepProgram {
 public:
  StepProgram(DeviceLane& lane, const Steps& steps);
  StepProgram(const StepProgram&) = delete;
  StepProgram& operator=(const StepProgram&) = delete;

  // The lane's number of the call, and of its first step.
  uint64_t number() const { return number_; }
  uint64_t first_step() const { return first_step_; }
  size_t entries_to_begin() const { return room_.to_begin(); }
  // Enqueues the program. Waits for room in between if it has more entries than the queue holds.
  Result<void> enqueue(const AwaitRoom& await_room);
  void end() { lane_.end_program(number_); }

 private:
  size_t entries() const;
  Result<void> produce(uint64_t step);
  Result<void> consume(uint64_t step);
  Result<void> write(DeviceWord& word, uint64_t value);
  Result<void> await(DeviceWord& word, uint64_t value);
  Result<void> copy(const Copy& copy);
  Result<void> make_room(size_t entries) { return room_.make(entries, *await_room_); }

  DeviceLane& lane_;
  StepWords& words_;
  const LandingSlots& landing_;
  const Steps& steps_;
  uint64_t number_;
  uint64_t first_step_;
  QueueRoom room_;
  const AwaitRoom* await_room_ = nullptr;
};

}  // namespace fccl::core
