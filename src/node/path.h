// Which path a call takes. Only what is equal on all ranks decides.
#pragma once

#include "node/phases.h"

namespace fccl {

enum class Path { alone, mailbox, attach, ring, across };

// Of the ranks of one host.
Path choose(const Call& call, const Lane& lane);

// What runs a call on a path within a host.
using NodePhase = Phase (*)(FrameMemory& frame, Lane& lane, Task task);
NodePhase phase_of(Path path, fcclColl_t collective);

}  // namespace fccl
