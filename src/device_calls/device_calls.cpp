// Waits for the calls on GPU memory of both paths, and leaves them.
#include "device_calls/device_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "device_calls/device_path.h"
#include "device_calls/own_device.h"
#include "device_calls/retired_lanes.h"
#include "device_calls/staged_path.h"
#include "health/control.h"
#include "operations/communicator_state.h"
#include "os/clock.h"
#include "waiting/backoff.h"

namespace fccl::core {
namespace {

using namespace std::chrono_literals;

// Destroying a communicator lets calls that the GPU has reached run on for this long.
constexpr auto kEndWithin = 2s;

}  // namespace

DeviceCalls::DeviceCalls(std::shared_ptr<Device> device, const Settings& settings, CommunicatorState& state)
    : state_(state),
      gpu_(std::make_unique<OwnDevice>(std::move(device), state)),
      path_(std::make_unique<DevicePath>(*gpu_, settings, state)),
      staged_(std::make_unique<StagedPath>(*gpu_, settings, state)) {}

Result<void> DeviceCalls::await_lane(LaneId lane, Issuer who_waits, const CancelCheck& cancel_check) {
  const LaneQueue& queue = state_.lanes[lane];
  if (queue.is_idle()) return {};
  return gpu_->await({[&] { return queue.is_idle(); }, [&] { return queue.finished.load(std::memory_order_relaxed); },
                      [&] { return std::string("to come to the calls that were issued before ") + name_of(who_waits); },
                      cancel_check});
}

bool DeviceCalls::lanes_are_idle() const { return std::ranges::all_of(state_.lanes, &LaneQueue::is_idle); }

Result<bool> DeviceCalls::is_drained() {
  for (const OwnLane& lane : path_->lanes()) {
    const Result<bool> drained = lane.is_drained();
    if (!drained || !*drained) return drained;
  }
  return staged_->lane().is_drained();
}

bool DeviceCalls::has_begun() {
  return std::ranges::any_of(path_->lanes(), &OwnLane::has_begun) || staged_->lane().has_begun();
}

Result<void> DeviceCalls::await_all(const CancelCheck& cancel_check) {
  const Device::Use use(*gpu_->device());
  FCCL_TRY(use.entered());
  const auto done = [this]() -> Result<bool> {
    if (!lanes_are_idle()) return false;
    return is_drained();
  };
  const auto progress = [this] {
    uint64_t sum = 0;
    for (const LaneQueue& queue : state_.lanes) sum += queue.finished.load(std::memory_order_relaxed);
    return sum;
  };
  return gpu_->await(
      {done, progress, [] { return "to come to all calls that were issued before fcclCommFinalize"; }, cancel_check});
}

void DeviceCalls::leave() {
  const Device::Use use(*gpu_->device());
  const Deadline limit = Deadline::after(kEndWithin);
  const auto is_over = [this] {
    const Result<bool> drained = is_drained();
    return !drained || *drained;
  };
  sleep_until([&] { return !use.entered() || is_over() || !has_begun() || limit.passed(); });
  if (state_.control->failures.has_failed() || (lanes_are_idle() && is_over())) return;
  (void)state_.control->failures.raise(
      {fcclAborted,
       fmt::format("rank {} destroyed its communicator before its GPU, cuda:{} ({}), was through with the calls that "
                   "were issued: synchronize their streams, or call fcclCommFinalize, before",
                   state_.control->peers.rank(), gpu_->device()->limits().ordinal, gpu_->device()->limits().name)});
}

DeviceCalls::~DeviceCalls() {
  for (OwnLane& lane : path_->lanes()) lane.retire();
  staged_->lane().retire();
  // Freeing waits for all work of the GPU, so it is skipped if the GPU may be out of order.
  if (!state_.control->failures.has_failed()) retired_lanes().free_idle();
}

}  // namespace fccl::core
