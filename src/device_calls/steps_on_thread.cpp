// Does one step after the other, in the order of the GPU's programs.
#include "device_calls/steps_on_thread.h"

#include <algorithm>
#include <cstring>

#include "device/landing.h"
#include "health/control.h"
#include "landing/step_program.h"
#include "operations/communicator_state.h"
#include "operations/issued_call.h"

namespace fccl::core {

Result<void> StepsOnThread::await_call(const void* scalar) {
  LaneMemory& memory = lane_.memory();
  const fcclDataType_t dtype = task_.call.signature.dtype;
  if (scalar != nullptr && !on_host_.scalar) FCCL_TRY(lane_.copy(memory.copy_of_scalar(scalar, dtype)));
  FCCL_TRY(await_own_gpu());
  if (scalar != nullptr && on_host_.scalar) std::memcpy(&memory.words().scalar, scalar, size_of(dtype));
  return {};
}

Result<void> StepsOnThread::run(const Steps& steps, uint64_t first_step) {
  return run(
      steps.count(), first_step, [&](uint64_t step, uint64_t number) { return put_gathered(steps, step, number); },
      [&](uint64_t step, uint64_t number) { return take_gathered(steps, step, number); });
}

Result<void> StepsOnThread::run(const ReduceSteps& steps, uint64_t first_step, int blocks) {
  return run(
      steps.count(), first_step, [&](uint64_t step, uint64_t number) { return put_for_peers(steps, step, number); },
      [&](uint64_t step, uint64_t number) -> Result<void> {
        FCCL_TRY(add(steps, step, number, blocks));
        return steps.shares_results() && step > 0 ? take_results(steps, step - 1, number - 1) : Result<void>{};
      });
}

Result<void> StepsOnThread::run(uint64_t count, uint64_t first_step, const DoStep& fill, const DoStep& empty) {
  StepWords& words = lane_.words().steps;
  const auto produce = [&](uint64_t step) -> Result<void> {
    const uint64_t number = first_step + step;
    FCCL_TRY(await_word(words.all_taken, number + 1 - LandingSlots::kSlots));
    FCCL_TRY(fill(step, number));
    release_to_device(words.done, number + 1);
    return {};
  };
  const auto consume = [&](uint64_t step) -> Result<void> {
    const uint64_t number = first_step + step;
    FCCL_TRY(await_word(words.all_done, number + 1));
    FCCL_TRY(empty(step, number));
    release_to_device(words.taken, number + 1);
    return {};
  };
  return in_order_of_steps(count, produce, consume);
}

Result<void> StepsOnThread::put_gathered(const Steps& steps, uint64_t step, uint64_t number) {
  const LandingSlots& landing = *lane_.landing();
  const bool on_host = on_host_.input && landing.is_on_host();
  const Copy copy =
      steps.given(step, on_host ? landing.slot(landing.rank(), number) : landing.device_slot(landing.rank(), number));
  return copy_part(copy, {.from = on_host_.input, .to = on_host});
}

Result<void> StepsOnThread::take_gathered(const Steps& steps, uint64_t step, uint64_t number) {
  const LandingSlots& landing = *lane_.landing();
  const bool on_host = on_host_.output && landing.is_on_host();
  for (int i = 1; i <= landing.ranks(); ++i) {
    const int peer = (landing.rank() + i) % landing.ranks();
    // The rank's own bytes, too, come out of its slot: its input and its output may lie in different places.
    const Copy copy = steps.taken(step, peer, on_host ? landing.slot(peer, number) : landing.device_slot(peer, number));
    FCCL_TRY(copy_part(copy, {.from = on_host, .to = on_host_.output}));
  }
  return {};
}

Result<void> StepsOnThread::put_for_peers(const ReduceSteps& steps, uint64_t step, uint64_t number) {
  const LandingSlots& landing = *lane_.landing();
  const int me = landing.rank(), ranks = landing.ranks();
  for (int i = 1; i < ranks; ++i) {
    const int peer = (me + i) % ranks;
    const Copy copy = steps.given(step, peer, landing.device_pair_slot(peer, me, number));
    FCCL_TRY(copy_part(copy, {.from = on_host_.input, .to = false}));
  }
  return {};
}

// A kernel gets the addresses of the GPU alone: the input comes into the first half of the lane's buffer, and the result into
// the second, if it belongs on the host.
Result<void> StepsOnThread::add(const ReduceSteps& steps, uint64_t step, uint64_t number, int blocks) {
  const Signature& s = steps.signature();
  std::byte* const buffer = lane_.memory().buffer(0);
  std::byte* const on_gpu = lane_.memory().device_address(buffer);
  const size_t half = buffer_bytes_ / 2, most = half / size_of(fcclFloat32);
  const bool to_host = on_host_.output && !steps.shares_results();
  std::byte* const results = steps.added(step, lane_.landing()->device_result_slot(lane_.landing()->rank(), number));
  for (size_t first = 0; first < steps.elements(step); first += most) {
    const size_t count = std::min(most, steps.elements(step) - first);
    const std::byte* own = steps.kept(step) + first * size_of(s.dtype);
    std::byte* const result = results + first * size_of(s.result_type());
    if (on_host_.input) {
      copy_here(buffer, own, count * size_of(s.dtype));
      own = on_gpu;
    }
    FCCL_TRY(enqueue_sum(lane_, s, number, {own, to_host ? on_gpu + half : result, first, count, blocks}));
    FCCL_TRY(await_own_gpu());
    if (to_host) copy_here(result, buffer + half, count * size_of(s.result_type()));
  }
  return {};
}

Result<void> StepsOnThread::take_results(const ReduceSteps& steps, uint64_t step, uint64_t number) {
  const LandingSlots& landing = *lane_.landing();
  FCCL_TRY(await_word(lane_.words().steps.all_taken, number + 1));
  for (int i = 1; i <= landing.ranks(); ++i) {
    const int rank = (landing.rank() + i) % landing.ranks();
    const Copy copy = steps.taken(step, rank, landing.device_result_slot(rank, number));
    FCCL_TRY(copy_part(copy, {.from = false, .to = on_host_.output}));
  }
  return {};
}

// The GPU copies between the places that it has an address for; what the user has pinned goes through the lane's buffer, for
// which it has one.
Result<void> StepsOnThread::copy_part(const Copy& copy, const OnHost& on_host) {
  if (copy.bytes == 0) return {};
  if (on_host.from && on_host.to) {
    copy_here(copy.to, copy.from, copy.bytes);
    return {};
  }
  if (!on_host.from && !on_host.to) return copy_and_wait(copy);
  std::byte* const buffer = lane_.memory().buffer(0);
  std::byte* const on_gpu = lane_.memory().device_address(buffer);
  for (size_t done = 0; done < copy.bytes; done += buffer_bytes_) {
    const size_t bytes = std::min(buffer_bytes_, copy.bytes - done);
    if (on_host.from) copy_here(buffer, copy.from + done, bytes);
    FCCL_TRY(copy_and_wait(on_host.from ? Copy{copy.to + done, on_gpu, bytes} : Copy{on_gpu, copy.from + done, bytes}));
    if (on_host.to) copy_here(copy.to + done, buffer, bytes);
  }
  return {};
}

void StepsOnThread::copy_here(void* to, const void* from, size_t bytes) {
  std::memcpy(to, from, bytes);
  copied_ += bytes;
}

Result<void> StepsOnThread::copy_and_wait(const Copy& copy) {
  FCCL_TRY(lane_.copy(copy));
  return await_own_gpu();
}

// The worker's half of the call judges how long its peers may take.
Result<void> StepsOnThread::await_word(const DeviceWord& word, uint64_t value) {
  uint64_t looks = 0;
  FCCL_TRY(gpu_.await({[&] { return has_come(word, value); }, [&] { return ++looks; },
                       [&] { return "in " + state_.control->calls.describe(task_); }}));
  if (auto failed = state_.control->failures.first()) return fail(std::move(*failed));
  return {};
}

Result<void> StepsOnThread::await_own_gpu() {
  return gpu_.await_idle(lane_, [&] { return "to come to " + state_.control->calls.describe(task_); });
}

}  // namespace fccl::core
