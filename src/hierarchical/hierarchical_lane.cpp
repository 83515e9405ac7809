// Makes and ends a lane's parts, which most users of the lane need not know.
#include "hierarchical/hierarchical_lane.h"

#include <utility>

#include "hierarchical/counts_exchange.h"
#include "hierarchical/inter_host_call.h"
#include "hierarchical/pair_blocks.h"

namespace fccl::core {

HierarchicalLane::HierarchicalLane(const Columns& all, WirePlanner of_lane, std::unique_ptr<InterHostCall> call)
    : columns(all), planner(std::move(of_lane)), inter_host_call(std::move(call)) {}

HierarchicalLane::~HierarchicalLane() = default;

}  // namespace fccl::core
