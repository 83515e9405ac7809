// Chooses the route that a call begins with, and the phase that runs a route.
#pragma once

#include "host/phases.h"

namespace fccl::core {

// Returns the route of a call whose ranks make the same offers as for the last call. The ranks' offers for this call may then
// change it.
Route choose(const Call& call, const Lane& lane);

// The function that runs a call by a route within a host.
using HostPhase = Phase (*)(FrameMemory& frame, Lane& lane, Route route, Task task);
HostPhase phase_of(const Route& route, fcclColl_t collective);

}  // namespace fccl::core
