// With which path a call begins. Only what is equal on all ranks decides.
#pragma once

#include "node/path_name.h"
#include "node/phases.h"

namespace fccl {

// Of the ranks of one host.
Path choose(const Call& call, const Lane& lane);

// What runs a call on a path within a host.
using NodePhase = Phase (*)(FrameMemory& frame, Lane& lane, Task task);
NodePhase phase_of(Path path, fcclColl_t collective);

}  // namespace fccl
