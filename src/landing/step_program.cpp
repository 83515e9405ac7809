// Enqueues the entries of a program of steps one after the other.
#include "landing/step_program.h"

namespace fccl::core {
namespace {

// Word operations per step: two waits and two writes.
constexpr size_t kWordsOfStep = 4;
// Of a queue for sums: it waits for the user's stream, and its mark is set and awaited.
constexpr size_t kEntriesOfSums = 3;

size_t entries_beside_steps(const DeviceLane& lane) {
  return kEntriesOfEnds + 1 + (lane.landing()->is_for_pairs() ? kEntriesOfSums : 0);
}

}  // namespace

// One word says that the call is reached.
StepProgram::StepProgram(DeviceLane& lane, uint64_t steps, size_t entries)
    : lane_(lane),
      words_(lane.words().steps),
      count_(steps),
      number_(lane.take_numbers(1)),
      first_step_(lane.take_steps(steps)),
      room_(lane, entries_beside_steps(lane) + steps * (kWordsOfStep + entries)) {}

Result<void> StepProgram::write(DeviceWord& word, uint64_t value, On on) {
  FCCL_TRY(make_room(1));
  return lane_.enqueue({lane_.memory().write(word, value)}, on);
}

Result<void> StepProgram::await(DeviceWord& word, uint64_t value, On on) {
  FCCL_TRY(make_room(1));
  return lane_.enqueue({lane_.memory().wait(word, value)}, on);
}

Result<void> StepProgram::copy(const Copy& copy, On on) {
  if (copy.bytes == 0) return {};
  FCCL_TRY(make_room(1));
  return lane_.copy(copy, on);
}

Result<void> StepProgram::produce(uint64_t step) {
  const uint64_t number = first_step_ + step;
  FCCL_TRY(await(words_.all_taken, number + 1 - LandingSlots::kSlots, On::queue));
  FCCL_TRY(fill(step, number));
  return write(words_.done, number + 1, On::queue);
}

Result<void> StepProgram::consume(uint64_t step) {
  const uint64_t number = first_step_ + step;
  FCCL_TRY(await(words_.all_done, number + 1, On::sums));
  FCCL_TRY(empty(step, number));
  return write(words_.taken, number + 1, On::sums);
}

Result<void> StepProgram::enqueue(const void* scalar, fcclDataType_t dtype, const AwaitRoom& await_room) {
  await_room_ = &await_room;
  if (scalar != nullptr) FCCL_TRY(copy_in(lane_.memory().copy_of_scalar(scalar, dtype)));
  FCCL_TRY(write(lane_.words().ready, number_, On::queue));
  FCCL_TRY(in_order_of_steps(
      count_, [this](uint64_t step) { return produce(step); }, [this](uint64_t step) { return consume(step); }));
  FCCL_TRY(make_room(1));
  return lane_.write_drained();
}

Result<void> GatherProgram::fill(uint64_t step, uint64_t number) {
  return copy_in(steps_.given(step, landing().device_slot(landing().rank(), number)));
}

Result<void> GatherProgram::empty(uint64_t step, uint64_t number) {
  const int me = landing().rank(), ranks = landing().ranks();
  for (int i = 1; i < ranks; ++i) {
    const int peer = (me + i) % ranks;
    FCCL_TRY(copy_out(steps_.taken(step, peer, landing().device_slot(peer, number))));
  }
  return copy_out(steps_.kept(step));
}

Result<void> ReduceProgram::fill(uint64_t step, uint64_t number) {
  const int me = landing().rank(), ranks = landing().ranks();
  for (int i = 1; i < ranks; ++i) {
    const int peer = (me + i) % ranks;
    FCCL_TRY(copy_in(steps_.given(step, peer, landing().device_pair_slot(peer, me, number))));
  }
  return {};
}

Result<void> ReduceProgram::empty(uint64_t step, uint64_t number) {
  FCCL_TRY(add(step, number));
  return steps_.shares_results() && step > 0 ? take_results(step - 1, number - 1) : Result<void>{};
}

Result<void> ReduceProgram::add(uint64_t step, uint64_t number) {
  const size_t elements = steps_.elements(step);
  if (elements == 0) return {};
  std::byte* const out = steps_.added(step, landing().device_result_slot(landing().rank(), number));
  FCCL_TRY(make_room(1));
  return enqueue_sum(lane(), steps_.signature(), number, {steps_.kept(step), out, 0, elements, blocks_});
}

Result<void> ReduceProgram::take_results(uint64_t step, uint64_t number) {
  const int me = landing().rank(), ranks = landing().ranks();
  FCCL_TRY(await_all_taken(number + 1));
  for (int i = 1; i <= ranks; ++i) {
    const int rank = (me + i) % ranks;
    FCCL_TRY(copy_out(steps_.taken(step, rank, landing().device_result_slot(rank, number))));
  }
  return {};
}

}  // namespace fccl::core
