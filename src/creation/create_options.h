// How a communicator is to be made.
#pragma once

#include <memory>
#include <string>

#include "system/settings.h"

namespace fccl {

class Device;

// A value of whoever creates; the communicator keeps a copy, from which its parts start.
struct CreateOptions {
  Settings settings;
  std::string name;
  std::shared_ptr<Device> device;  // of a communicator of CUDA memory; null: of CPU memory

  // The lines that must be equal on all ranks.
  std::string agreement() const {
    return settings.agreement() + (device ? "memoryKind=fcclMemoryCuda\n" : "memoryKind=fcclMemoryCpu\n");
  }
};

}  // namespace fccl
