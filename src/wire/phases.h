// The wire phases: how each collective moves its bytes between the members of a wire group.
//
// Every phase announces the call to each peer, reads each peer's entry before it returns, and ends early when a peer's call
// differs. So no member is ever two calls ahead of another on a lane. When a phase has ended well, all that the member sends
// has been handed to the transport, and the buffers belong to the caller again.
#pragma once

#include "system/wait.h"
#include "wire/lane.h"
#include "wire/task.h"

namespace fccl {

// The bytes that go to each peer beside the entry if the call goes that way: it may if they are at most payload_bytes().
size_t payload_bytes_of(const WireTask& task);

// One one-way trip, without steps: the payload beside the entry, straight to each peer.
Phase wire_mailbox(FrameMemory& frame, WireLane& lane, WireTask task);
// The steps of a plan over slices, for any size.
Phase wire_exchange(FrameMemory& frame, WireLane& lane, WireTask task);

// A poll of the network for whoever waits for a phase of this lane; see run_to_end.
Poll poll_of(WireLane& lane);

}  // namespace fccl
