// Enqueues the entries of a program of steps one after the other.
#include "landing/step_program.h"

namespace fccl::core {
namespace {

// Word operations per step: two waits and two writes.
constexpr size_t kWordsOfStep = 4;

}  // namespace

StepProgram::StepProgram(DeviceLane& lane, const Steps& steps)
    : lane_(lane),
      words_(lane.words().steps),
      landing_(*lane.landing()),
      steps_(steps),
      number_(lane.take_numbers(1)),
      first_step_(lane.take_steps(steps.count())),
      room_(lane, entries()) {}

// A step copies in, keeps, and takes from each peer; one word says that the call is reached.
size_t StepProgram::entries() const {
  return kEntriesOfEnds + 1 + steps_.count() * (kWordsOfStep + 1 + static_cast<size_t>(landing_.ranks()));
}

Result<void> StepProgram::write(DeviceWord& word, uint64_t value) {
  FCCL_TRY(make_room(1));
  return lane_.enqueue({lane_.memory().write(word, value)});
}

Result<void> StepProgram::await(DeviceWord& word, uint64_t value) {
  FCCL_TRY(make_room(1));
  return lane_.enqueue({lane_.memory().wait(word, value)});
}

Result<void> StepProgram::copy(const Copy& copy) {
  if (copy.bytes == 0) return {};
  FCCL_TRY(make_room(1));
  return lane_.copy(copy);
}

Result<void> StepProgram::produce(uint64_t step) {
  const uint64_t number = first_step_ + step;
  FCCL_TRY(await(words_.all_taken, number + 1 - LandingSlots::kSlots));
  FCCL_TRY(copy(steps_.given(step, landing_.device_slot(landing_.rank(), number))));
  return write(words_.done, number + 1);
}

Result<void> StepProgram::consume(uint64_t step) {
  const uint64_t number = first_step_ + step;
  const int me = landing_.rank(), ranks = landing_.ranks();
  FCCL_TRY(await(words_.all_done, number + 1));
  for (int i = 1; i < ranks; ++i) {
    const int peer = (me + i) % ranks;
    FCCL_TRY(copy(steps_.taken(step, peer, landing_.device_slot(peer, number))));
  }
  FCCL_TRY(copy(steps_.kept(step)));
  return write(words_.taken, number + 1);
}

Result<void> StepProgram::enqueue(const AwaitRoom& await_room) {
  await_room_ = &await_room;
  FCCL_TRY(write(lane_.words().ready, number_));
  FCCL_TRY(in_order_of_steps(
      steps_.count(), [this](uint64_t step) { return produce(step); }, [this](uint64_t step) { return consume(step); }));
  FCCL_TRY(make_room(1));
  return lane_.write_drained();
}

}  // namespace fccl::core
