// Says how a communicator is to be made.
#pragma once

#include <memory>
#include <string>

#include "settings/settings.h"

namespace fccl::core {

class Device;

// The creator owns this value; the communicator keeps a copy, from which its state starts.
struct CreateOptions {
  Settings settings;
  std::string name;
  std::shared_ptr<Device> device;  // the GPU of a communicator of CUDA memory; null: CPU memory

  // Returns the lines that must be equal on all ranks.
  std::string agreement() const {
    return settings.agreement() + (device ? "memoryKind=fcclMemoryCuda\n" : "memoryKind=fcclMemoryCpu\n");
  }
};

}  // namespace fccl::core
