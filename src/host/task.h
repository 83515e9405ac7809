// Task: a call, with the data that every phase needs to run it.
#pragma once

#include <cstdint>

#include "base/call.h"
#include "kernels/reduce.h"

namespace fccl::core {

struct Task {
  Call call;
  uint64_t number = 0;            // the communicator's number of the call
  ReduceKernel reduce = nullptr;  // null if the call reduces nothing
};

}  // namespace fccl::core
