// RetiredLanes: what communicators that are gone have left on GPUs that were not through with it.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "device/lane.h"

namespace fccl {

// One per process. Any thread may call; the GPU is called on the thread that frees, and no lock is held meanwhile. All that is
// here has been released for good: what its programs still copy is garbage, into and out of memory that is kept until they are
// through.
class RetiredLanes {
 public:
  void add(std::unique_ptr<DeviceLane> lane);
  // Frees those that the GPU is through with. A set-up function of the device.
  void free_idle();
  size_t count();

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<DeviceLane>> lanes_;
};

RetiredLanes& retired_lanes();

}  // namespace fccl
