// Installed GPUs: the contract's two functions over simulated GPUs, in the place of those over the driver.
#include "devices/installed_gpus.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>

namespace fccl::core {

namespace {

std::mutex mutex;
std::map<int, std::shared_ptr<simulated::SimulatedGpu>> gpus;
thread_local int current = -1;

}  // namespace

namespace simulated {

void install(std::shared_ptr<SimulatedGpu> gpu) {
  const std::scoped_lock lock(mutex);
  const int ordinal = gpu->limits().ordinal;
  gpus[ordinal] = std::move(gpu);
}

void uninstall_all() {
  const std::scoped_lock lock(mutex);
  gpus.clear();
}

void set_current_device(int ordinal) { current = ordinal; }

}  // namespace simulated

Result<std::shared_ptr<Device>> open_device(int ordinal) {
  const std::scoped_lock lock(mutex);
  if (gpus.empty()) return fail(fcclSystemError, "cannot use a GPU: no GPU (none was installed by the test)");
  const auto found = gpus.find(ordinal);
  if (found == gpus.end())
    return fail(fcclInvalidArgument, fmt::format("cannot use GPU {}: the test installed {}", ordinal, gpus.size()));
  return std::shared_ptr<Device>(found->second);
}

int current_device() { return current; }

}  // namespace fccl::core
