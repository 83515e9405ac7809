// shape_of: reduces a topology to the Shape (plan/price.h) that the price model needs.
#pragma once

#include "plan/price.h"
#include "topology/topology.h"

namespace fccl::core::plan {

// Requires a topology whose hosts all have ranks and NICs. Its rails are the different NICs that serve the columns of a host.
Shape shape_of(const Topology& topology, const CostConstants& constants);

// Returns the speed in megabits per second; 0 if there is no NIC or some NIC's speed is unknown.
int slowest_nic(const Topology& topology);

}  // namespace fccl::core::plan
