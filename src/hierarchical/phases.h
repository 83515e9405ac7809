// The phase of a call between hosts: one loop of rounds within the host, while the wire advances on every poll.
//
// Like every phase it announces the call, and returns only when it knows that every rank has made the same one. A rank
// announces a call to its column only after every rank of its host has entered it. So an announcement from each host in the
// column means that every rank has entered.
#pragma once

#include <cstddef>

#include "fccl/fccl.h"
#include "host/phase.h"
#include "waiting/wait.h"

namespace fccl::core {

class Lane;
struct HierarchicalLane;
struct Task;

// True if calls of the collective can go between hosts: an algorithm carries them.
bool goes_between_hosts(fcclColl_t collective);

Phase across_hosts(FrameMemory& frame, Lane& lane, HierarchicalLane& hierarchical, Task task);

// Returns the poll that advances the inter-host call of the lane's current call; a waiting thread runs it. `bytes`: the length
// of one block of the call.
Poll poll_of(HierarchicalLane& hierarchical, size_t bytes);

}  // namespace fccl::core
