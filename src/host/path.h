// Chooses the path that a call begins with, from facts that are equal on all ranks.
#pragma once

#include "host/path_name.h"
#include "host/phases.h"

namespace fccl::core {

// Chooses among the paths within one host.
Path choose(const Call& call, const Lane& lane);

// The function that runs a call on a path within a host.
using HostPhase = Phase (*)(FrameMemory& frame, Lane& lane, Task task);
HostPhase phase_of(Path path, fcclColl_t collective);

}  // namespace fccl::core
