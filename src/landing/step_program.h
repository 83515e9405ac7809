// StepProgram: the entries of one call by landing slots on its lane's queue, between the fork and the call's end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/landing.h"
#include "device/lane.h"
#include "device/program.h"
#include "landing/reduce_steps.h"
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
//   produce s:  wait for all_taken q+s+1-slots; fill slots; write done q+s+1
//   consume s:  wait for all_done q+s+1; empty slots; write taken q+s+1
//   write drained
// A lane with a queue for sums consumes there, so that filling waits for slots alone. Words order all else, but the call's
// beginning and its end: its buffers are the user's before it and behind it. A slot is filled behind all_taken, which is
// written behind what empties it, whatever the queues.
// In the order in which entries are enqueued no wait's satisfier stands behind it on any rank: all_taken asks for steps that
// this rank has consumed, and all_done for those that it has produced. So the queues of a rank may share one line into the GPU.
// It lives, is forked and ended as a Program is.
class StepProgram {
 public:
  StepProgram(const StepProgram&) = delete;
  StepProgram& operator=(const StepProgram&) = delete;
  virtual ~StepProgram() = default;

  // The lane's number of the call, and of its first step.
  uint64_t number() const { return number_; }
  uint64_t first_step() const { return first_step_; }
  uint64_t steps() const { return count_; }
  size_t entries_to_begin() const { return room_.to_begin(); }
  // Enqueues the program. Waits for room in between if it has more entries than the queue holds. `scalar`: a factor in GPU
  // memory; null if the call has none.
  Result<void> enqueue(const void* scalar, fcclDataType_t dtype, const AwaitRoom& await_room);
  void end() { lane_.end_program(number_); }

 protected:
  // `entries`: the most that a step takes beside the words above.
  StepProgram(DeviceLane& lane, uint64_t steps, size_t entries);
  // The entries of one step, which has this number on the lane.
  virtual Result<void> fill(uint64_t step, uint64_t number) = 0;
  virtual Result<void> empty(uint64_t step, uint64_t number) = 0;

  DeviceLane& lane() const { return lane_; }
  const LandingSlots& landing() const { return *lane_.landing(); }
  Result<void> make_room(size_t entries) { return room_.make(entries, *await_room_); }
  // Enqueue what fills a slot, and what empties one.
  Result<void> copy_in(const Copy& copy) { return this->copy(copy, On::queue); }
  Result<void> copy_out(const Copy& copy) { return this->copy(copy, On::sums); }
  // Empties no more until all ranks have consumed all steps before the one that has this number.
  Result<void> await_all_taken(uint64_t number) { return await(words_.all_taken, number, On::sums); }

 private:
  using On = DeviceLane::On;

  Result<void> produce(uint64_t step);
  Result<void> consume(uint64_t step);
  Result<void> write(DeviceWord& word, uint64_t value, On on);
  Result<void> await(DeviceWord& word, uint64_t value, On on);
  Result<void> copy(const Copy& copy, On on);

  DeviceLane& lane_;
  StepWords& words_;
  uint64_t count_;
  uint64_t number_;
  uint64_t first_step_;
  QueueRoom room_;
  const AwaitRoom* await_room_ = nullptr;
};

// Fills this rank's slot, and empties each peer's, the next rank's first.
class GatherProgram final : public StepProgram {
 public:
  GatherProgram(DeviceLane& lane, const Steps& steps)
      : StepProgram(lane, steps.count(), static_cast<size_t>(lane.landing()->ranks()) + 1), steps_(steps) {}

 private:
  Result<void> fill(uint64_t step, uint64_t number) override;
  Result<void> empty(uint64_t step, uint64_t number) override;

  const Steps& steps_;
};

// Fills this rank's slot at each peer, and adds what the peers have put into its own ones by a kernel of at most so many
// blocks. Where all ranks take the results, step s > 0 goes on behind its sum:
//   wait for all_taken q+s; take what each rank has added in step s-1
// It adds into the slot that had the results of step s-4. All ranks took those in step s-3, for which step s-1 has waited; or
// in the call before, behind which they have begun to fill slots for this one.
class ReduceProgram final : public StepProgram {
 public:
  ReduceProgram(DeviceLane& lane, const ReduceSteps& steps, int blocks)
      : StepProgram(lane, steps.count(), (steps.shares_results() ? 2 : 1) * static_cast<size_t>(lane.landing()->ranks()) + 1),
        steps_(steps),
        blocks_(blocks) {}

 private:
  Result<void> fill(uint64_t step, uint64_t number) override;
  Result<void> empty(uint64_t step, uint64_t number) override;
  Result<void> add(uint64_t step, uint64_t number);
  Result<void> take_results(uint64_t step, uint64_t number);

  const ReduceSteps& steps_;
  int blocks_;
};

}  // namespace fccl::core
