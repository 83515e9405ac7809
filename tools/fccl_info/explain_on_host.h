// explain_on_host: which route a collective takes within one host, and which threshold decides it.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "fccl/fccl.h"

namespace fccl::core {

struct HostQuestion {
  fcclColl_t collective = fcclCollBarrier;
  size_t size = 0;  // bytes of the larger buffer
  int ranks = 1;
  fcclDataType_t dtype = fcclFloat32;
  bool arena = false;     // every rank's buffers lie in its arena
  bool in_place = false;  // on every rank
};

// Answers by the settings of this process. Error: fcclInvalidArgument for a call that cannot be, or that of a wrong setting.
Result<std::string> explain_on_host(const HostQuestion& question);

}  // namespace fccl::core
