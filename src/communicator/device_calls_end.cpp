// How a communicator of GPU memory waits on its own thread, and how it is left.
#include <fmt/format.h>

#include <algorithm>

#include "communicator/device_calls.h"
#include "communicator/retired_lanes.h"
#include "creation/parts.h"
#include "operations/stream.h"
#include "system/backoff.h"

namespace fccl::core {
namespace {

using namespace std::chrono_literals;

constexpr auto kLookForDeathsEvery = 100ms;
// Destroying a communicator lets calls that the GPU has reached run on for this long.
constexpr auto kEndWithin = 2s;

}  // namespace

// The wait is not in the driver: it holds no lock, and any failure of the communicator ends it.
Result<void> DeviceCalls::await(const OwnWait& wait) {
  Control& control = *parts_.control;
  const Clock::time_point began = Clock::now();
  Clock::time_point moved = began, next_look = began + kLookForDeathsEvery;
  for (uint64_t progress = wait.progress();;) {
    FCCL_TRY_ASSIGN(const bool done, wait.done());
    if (done) return {};
    if (auto failed = control.failures.first()) return fail(std::move(*failed));
    if (wait.cancel_check) FCCL_TRY(wait.cancel_check());
    const Clock::time_point now = Clock::now();
    if (const uint64_t here = wait.progress(); here != progress) {
      progress = here;
      moved = now;
    }
    if (now >= next_look) {
      next_look = now + kLookForDeathsEvery;
      control.liveness.look_for_deaths();
    }
    if (now - moved >= parts_.timeout)
      return fail(control.failures.raise(
          {fcclTimeout,
           fmt::format("rank {} has waited {:.3g} s for its own GPU, cuda:{} ({}), {}. The deadline is the "
                       "communicator's timeout (FCCL_TIMEOUT, timeoutMs, fcclCommSetTimeout); look whether the CUDA "
                       "stream is held by an event, by another library, or still computes",
                       control.peers.rank(), std::chrono::duration<double>(now - moved).count(), device_->limits().ordinal,
                       device_->limits().name, wait.what())}));
    kForGpu.rest(now - began);
  }
}

Result<void> DeviceCalls::await_lane(LaneId lane, Issuer who_waits, const CancelCheck& cancel_check) {
  const LaneQueue& queue = parts_.lanes[lane];
  if (queue.is_idle()) return {};
  return await({[&] { return queue.is_idle(); }, [&] { return queue.finished.load(std::memory_order_relaxed); },
                [&] { return std::string("to come to the calls that were issued before ") + name_of(who_waits); },
                cancel_check});
}

bool DeviceCalls::lanes_are_idle() const { return std::ranges::all_of(parts_.lanes, &LaneQueue::is_idle); }

Result<bool> DeviceCalls::is_drained() const {
  for (const OwnLane& lane : lanes_) {
    if (!lane.device) continue;
    if (lane.stream) {
      if (!lane.device->is_drained()) return false;
      continue;
    }
    const Result<bool> idle = device_->is_idle(lane.device->queue());
    if (!idle || !*idle) return idle;
  }
  return true;
}

// On the blocking path only the copy of a result can be left then.
bool DeviceCalls::has_begun() const {
  return std::ranges::any_of(lanes_, [this](const OwnLane& lane) {
    if (!lane.device) return false;
    if (lane.stream) return lane.device->has_begun();
    return lane.gpu_arrived && !device_->is_idle(lane.device->queue()).value_or(true);
  });
}

Result<void> DeviceCalls::await_all(const CancelCheck& cancel_check) {
  const Device::Use use(*device_);
  FCCL_TRY(use.entered());
  const auto done = [this]() -> Result<bool> {
    if (!lanes_are_idle()) return false;
    return is_drained();
  };
  const auto progress = [this] {
    uint64_t sum = 0;
    for (const LaneQueue& queue : parts_.lanes) sum += queue.finished.load(std::memory_order_relaxed);
    return sum;
  };
  return await({done, progress, [] { return "to come to all calls that were issued before fcclCommFinalize"; }, cancel_check});
}

void DeviceCalls::leave() {
  const Device::Use use(*device_);
  const Deadline limit = Deadline::after(kEndWithin);
  const auto is_over = [this] {
    const Result<bool> drained = is_drained();
    return !drained || *drained;
  };
  sleep_until([&] { return !use.entered() || is_over() || !has_begun() || limit.passed(); });
  if (parts_.control->failures.has_failed() || (lanes_are_idle() && is_over())) return;
  (void)parts_.control->failures.raise(
      {fcclAborted,
       fmt::format("rank {} destroyed its communicator before its GPU, cuda:{} ({}), was through with the calls that "
                   "were issued: synchronize their streams, or call fcclCommFinalize, before",
                   parts_.control->peers.rank(), device_->limits().ordinal, device_->limits().name)});
}

DeviceCalls::~DeviceCalls() {
  for (OwnLane& lane : lanes_) {
    lane.stream.reset();
    if (lane.device) retired_lanes().add(std::move(lane.device));
  }
  // Freeing waits for all work of the GPU, so it is skipped if the GPU may be out of order.
  if (!parts_.control->failures.has_failed()) retired_lanes().free_idle();
}

}  // namespace fccl::core
