// The node phases: how each collective moves its bytes between the ranks of one host.
//
// Every phase announces the call, reads every rank's word before it returns, and ends early when a rank's call differs. So no
// rank is ever two calls ahead of another on a lane, and whoever has entered a call is done with all earlier ones. The lines
// that do so stand in each phase: a nested coroutine would need a frame of its own (docs/decisions/0003).
#pragma once

#include "kernels/reduce.h"
#include "node/lane.h"

namespace fccl {

// A call with what every phase needs to run it.
struct Task {
  Call call;
  uint64_t number = 0;            // of the call, in the communicator
  ReduceKernel reduce = nullptr;  // where something is reduced
  bool settled = false;           // all ranks have entered, and their offers have led to this phase
};

// The bytes that the busiest rank puts beside its word if `call` goes by mailbox; not of AlltoAllV, where ranks must tell.
size_t mailbox_bytes(const Call& call, int ranks);

// One rank, no peers.
Phase alone(FrameMemory& frame, Lane& lane, Task task);
// Every collective whose mailbox_bytes fit: payload beside the word, no barrier at the end.
Phase mailbox(FrameMemory& frame, Lane& lane, Task task);

// AlltoAllV if all that every rank gives fits into its box, beside the counts; else it ends closed on every rank, and the ring
// goes on.
Phase mailbox_all_to_all_v(FrameMemory& frame, Lane& lane, Task task);

// The phases below come to their path by offers (node/offer.h): each may be entered, and ends settled where the ranks' offers
// lead to another one.

// Every collective where all that is read lies in the arenas of its ranks.
Phase mapped_move(FrameMemory& frame, Lane& lane, Task task);
// The same of AlltoAllV, whose ranks first tell each other where blocks begin.
Phase mapped_all_to_all_v(FrameMemory& frame, Lane& lane, Task task);
// ReduceScatter, and an AllReduce where each rank reduces the whole vector.
Phase mapped_reduce(FrameMemory& frame, Lane& lane, Task task);
// AllReduce and Reduce where each rank reduces a shard.
Phase mapped_all_reduce(FrameMemory& frame, Lane& lane, Task task);

// AllGather and AlltoAll where each rank reads its peers' memory. Ends settled on the ring if a rank could not be read: then no
// rank has its result, every one still has its input, and the ring goes on.
Phase attach_move(FrameMemory& frame, Lane& lane, Task task);

// Through slots, slice by slice, for any size. Buffers are private memory of any alignment.
Phase ring_all_gather(FrameMemory& frame, Lane& lane, Task task);
Phase ring_broadcast(FrameMemory& frame, Lane& lane, Task task);
Phase ring_gather(FrameMemory& frame, Lane& lane, Task task);
Phase ring_scatter(FrameMemory& frame, Lane& lane, Task task);
Phase ring_reduce_scatter(FrameMemory& frame, Lane& lane, Task task);
Phase ring_all_to_all(FrameMemory& frame, Lane& lane, Task task);
// AllReduce, and Reduce, where only the root takes the result.
Phase ring_all_reduce(FrameMemory& frame, Lane& lane, Task task);

}  // namespace fccl
