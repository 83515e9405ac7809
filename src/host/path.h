// Names the phase that runs a route.
#pragma once

#include "fccl/fccl.h"
#include "host/phase.h"

namespace fccl::core {

class Lane;
struct Task;

// The function that runs a call by a route within a host.
using HostPhase = Phase (*)(FrameMemory& frame, Lane& lane, Route route, Task task);
HostPhase phase_of(const Route& route, fcclColl_t collective);

}  // namespace fccl::core
