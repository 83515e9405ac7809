// Names the phase that runs a route.
#pragma once

#include "host/phases.h"

namespace fccl::core {

// The function that runs a call by a route within a host.
using HostPhase = Phase (*)(FrameMemory& frame, Lane& lane, Route route, Task task);
HostPhase phase_of(const Route& route, fcclColl_t collective);

}  // namespace fccl::core
