// Enqueues the entries of a program one after the other.
#include "device/program.h"

#include <algorithm>

namespace fccl::core {
namespace {

// Word operations per sub-call: ready, finished.
constexpr size_t kWords = 2;

}  // namespace

Program::Program(DeviceLane& lane, const SubCalls& calls, const void* scalar)
    : lane_(lane), calls_(calls), scalar_(scalar), first_number_(lane.take_numbers(calls.count())), room_(lane, entries()) {}

// No other sub-call needs more copies than the first.
size_t Program::entries() const {
  return kEntriesOfEnds +
         calls_.count() * (kWords + calls_.in(0, device_buffer(0)).count + calls_.out(0, device_buffer(0)).count);
}

Result<void> QueueRoom::make(size_t entries, const AwaitRoom& await_room) {
  if (fits_) return {};
  if (lane_.unmarked() >= lane_.queue_entries() / 4) FCCL_TRY(lane_.write_drained());
  return await_room(entries + kEntriesToMark);
}

Result<void> Program::copy(const Copies& copies) {
  for (size_t i = 0; i < copies.count; ++i) {
    FCCL_TRY(make_room(1));
    FCCL_TRY(lane_.copy(copies[i]));
  }
  return {};
}

Result<void> Program::bring_in(uint64_t part) { return copy(calls_.in(part, device_buffer(part))); }

Result<void> Program::take_out(uint64_t part) { return copy(calls_.out(part, device_buffer(part))); }

Result<void> Program::enqueue(const AwaitRoom& await_room) {
  await_room_ = &await_room;
  const LaneMemory& memory = lane_.memory();
  LaneWords& words = lane_.words();
  if (scalar_ != nullptr) FCCL_TRY(lane_.copy(memory.copy_of_scalar(scalar_, calls_.whole().signature.dtype)));
  FCCL_TRY(bring_in(0));
  FCCL_TRY(make_room(1));
  FCCL_TRY(lane_.enqueue({memory.write(words.ready, first_number_)}));
  for (uint64_t part = 0; part < calls_.count(); ++part) {
    const uint64_t number = first_number_ + part;
    if (part + 1 < calls_.count()) {
      FCCL_TRY(bring_in(part + 1));
      FCCL_TRY(make_room(2));
      FCCL_TRY(lane_.enqueue({memory.write(words.ready, number + 1), memory.wait(words.finished, number)}));
    } else {
      FCCL_TRY(make_room(1));
      FCCL_TRY(lane_.enqueue({memory.wait(words.finished, number)}));
    }
    FCCL_TRY(take_out(part));
  }
  FCCL_TRY(make_room(1));
  return lane_.write_drained();
}

}  // namespace fccl::core
