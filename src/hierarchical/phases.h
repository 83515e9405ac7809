// The phase of a call between hosts: one loop of rounds within the host, beside which the wire goes on.
//
// Like every phase it announces the call and returns only when it knows that every rank has made the same one: a rank tells its
// column of a call when all ranks of its host have told it, so that who has heard of its column has heard of all hosts.
#pragma once

#include "hierarchical/hierarchical_lane.h"
#include "node/phases.h"

namespace fccl {

Phase across_hosts(FrameMemory& frame, Lane& lane, HierarchicalLane& hierarchical, Task task);

// Lets the inter-host call of the lane's current call get on; for whoever waits. `bytes`: of one block of the call.
Poll poll_of(HierarchicalLane& hierarchical, size_t bytes);

}  // namespace fccl
