// The phases within a host: one coroutine per collective and path moves the bytes between the host's ranks.
//
// A call begins with the mailbox, or with `enter` if it is longer. Either announces the call, reads every rank's word before it
// returns, and ends early if a rank's call differs. So no rank is ever two calls ahead of another on a lane, and a rank that
// has entered a call has finished all earlier ones.
#pragma once

#include "host/phase.h"

namespace fccl::core {

class Lane;
struct Task;

// Runs a call of a single rank.
Phase alone(FrameMemory& frame, Lane& lane, Route route, Task task);
// Runs any collective whose mailbox_bytes (host/route.h) fit: payloads travel beside the word, without a barrier at the end.
Phase mailbox(FrameMemory& frame, Lane& lane, Route route, Task task);

// Runs AlltoAllV if every rank's blocks fit into its box beside the counts. Otherwise all ranks go past the mailbox.
Phase mailbox_all_to_all_v(FrameMemory& frame, Lane& lane, Route route, Task task);

// Enters a call with this rank's offer of memory (host/offer.h). All ranks go on by the route that their offers select.
Phase enter(FrameMemory& frame, Lane& lane, Task task);

// The phases below move the data of a call that all ranks have entered.

// Runs a collective whose inputs all lie in the arenas of their ranks.
Phase mapped_move(FrameMemory& frame, Lane& lane, Route route, Task task);
// Runs AlltoAllV on arenas; ranks first tell each other where their blocks begin.
Phase mapped_all_to_all_v(FrameMemory& frame, Lane& lane, Route route, Task task);
// Runs ReduceScatter, and an AllReduce in which each rank reduces the whole vector.
Phase mapped_reduce(FrameMemory& frame, Lane& lane, Route route, Task task);
// Runs AllReduce and Reduce; each rank reduces a shard.
Phase mapped_all_reduce(FrameMemory& frame, Lane& lane, Route route, Task task);

// Runs AllGather and AlltoAll; each rank reads its peers' memory. If a rank cannot read, all go on by the ring: no rank
// has its result, and each still has its input.
Phase attach_move(FrameMemory& frame, Lane& lane, Route route, Task task);

// Run collectives of any size through slots, slice by slice. Buffers are private memory of any alignment.
Phase ring_all_gather(FrameMemory& frame, Lane& lane, Route route, Task task);
Phase ring_broadcast(FrameMemory& frame, Lane& lane, Route route, Task task);
Phase ring_gather(FrameMemory& frame, Lane& lane, Route route, Task task);
Phase ring_scatter(FrameMemory& frame, Lane& lane, Route route, Task task);
Phase ring_reduce_scatter(FrameMemory& frame, Lane& lane, Route route, Task task);
Phase ring_all_to_all(FrameMemory& frame, Lane& lane, Route route, Task task);
// Runs AllReduce, and Reduce, in which only the root takes the result.
Phase ring_all_reduce(FrameMemory& frame, Lane& lane, Route route, Task task);

}  // namespace fccl::core
