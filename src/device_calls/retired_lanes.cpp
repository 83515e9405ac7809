// Asks the GPU about each retired lane, and frees it.
#include "device_calls/retired_lanes.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "os/per_process.h"

namespace fccl::core {
namespace {

constinit PerProcess<RetiredLanes> retired;

// Returns true if it was idle and is freed.
bool free_if_idle(std::unique_ptr<DeviceLane>& lane) {
  // The lane may hold the last reference to the device.
  const std::shared_ptr<Device> device = lane->device();
  const Device::Use use(*device);
  if (!use.entered()) return false;
  const Result<bool> idle = lane->is_idle();
  if (!idle || !*idle) return false;
  lane.reset();
  return true;
}

}  // namespace

RetiredLanes& retired_lanes() { return retired.get(); }

void RetiredLanes::add(std::unique_ptr<DeviceLane> lane) {
  lane->release_permanently();
  const std::lock_guard lock(mutex_);
  lanes_.push_back(std::move(lane));
}

void RetiredLanes::free_idle() {
  std::vector<std::unique_ptr<DeviceLane>> mine;
  {
    const std::lock_guard lock(mutex_);
    mine.swap(lanes_);
  }
  std::erase_if(mine, free_if_idle);
  const std::lock_guard lock(mutex_);
  std::ranges::move(mine, std::back_inserter(lanes_));
}

size_t RetiredLanes::count() {
  const std::lock_guard lock(mutex_);
  return lanes_.size();
}

}  // namespace fccl::core
