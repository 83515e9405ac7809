// HierarchicalLane: what a lane has beside the node's where the communicator spans hosts.
#pragma once

#include <memory>

#include "hierarchical/columns.h"
#include "hierarchical/counts_exchange.h"
#include "hierarchical/inter_host_call.h"
#include "hierarchical/pair_blocks.h"
#include "hierarchical/wire_planner.h"

namespace fccl {

// Owned by the communicator, whose columns outlive it; used by the one thread that runs the lane's current call. After a
// failure no call follows.
struct HierarchicalLane {
  const Columns& columns;
  WirePlanner planner;
  std::unique_ptr<InterHostCall> inter_host_call;  // null if this rank has no column
  // Made by the first call that needs them.
  std::unique_ptr<PairBlocks> pair_blocks = {};
  std::unique_ptr<CountsExchange> counts_exchange = {};
};

}  // namespace fccl
