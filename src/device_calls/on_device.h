// OnDevice: what an operation on GPU memory needs in addition to its arguments.
#pragma once

#include <variant>

#include "base/call.h"
#include "base/transfer.h"

namespace fccl::core {

using CallOrTransfer = std::variant<Call, TransferEnd>;

// The user's stream, and this rank's factor if it lies on the GPU.
struct OnDevice {
  void* stream = nullptr;
  const void* scalar = nullptr;
};

}  // namespace fccl::core
