// RetiredLanes: keeps lanes of destroyed communicators until their GPUs have finished with them.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "device/lane.h"

namespace fccl::core {

// One per process. Any thread may call; it calls the GPU on the thread that frees, and holds no lock in that call. All lanes
// here have been released for good: their programs may still copy garbage, but only in memory that is kept until they end.
class RetiredLanes {
 public:
  void add(std::unique_ptr<DeviceLane> lane);
  // Frees the lanes that the GPU has finished with. A set-up function of the device.
  void free_idle();
  size_t count();

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<DeviceLane>> lanes_;
};

RetiredLanes& retired_lanes();

}  // namespace fccl::core
