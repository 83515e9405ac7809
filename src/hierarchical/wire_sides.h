// Says what a rank exchanges with other hosts in a call, and where the pieces for the wire and from it lie.
#pragma once

#include "hierarchical/relay_context.h"

namespace fccl::core {

// Returns the part of this rank, which has a column. The blocks of pairs must be placed.
WireTask wire_task_of(const RelayContext& context);

}  // namespace fccl::core
