// Which path a call takes. Only what is equal on all ranks decides.
#pragma once

#include "node/phases.h"

namespace fccl {

enum class Path { alone, mailbox, attach, ring, across };

// Of the ranks of one host.
Path choose(const Signature& signature, const Lane& lane);

// The phase that runs `task` on a path within a host, its frame in the lane's memory.
Phase start(Path path, Lane& lane, const Task& task);

}  // namespace fccl
