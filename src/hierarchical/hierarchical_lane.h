// HierarchicalLane: the parts of a lane that a communicator of several hosts adds to those of one host.
#pragma once

#include <memory>

#include "hierarchical/wire_planner.h"
#include "topology/columns.h"

namespace fccl::core {

class CountsExchange;
class InterHostCall;
class PairBlocks;

// Owned by the communicator, whose columns outlive it; the one thread that runs the lane's current call uses it. After a
// failure no call follows.
struct HierarchicalLane {
  // `call`: null if this rank has no column.
  HierarchicalLane(const Columns& all, WirePlanner of_lane, std::unique_ptr<InterHostCall> call);
  ~HierarchicalLane();

  const Columns& columns;
  WirePlanner planner;
  std::unique_ptr<InterHostCall> inter_host_call;  // null if this rank has no column
  // The first call that needs these makes them.
  std::unique_ptr<PairBlocks> pair_blocks;
  std::unique_ptr<CountsExchange> counts_exchange;
};

}  // namespace fccl::core
