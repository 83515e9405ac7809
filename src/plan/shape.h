// shape_of: the Shape (plan/price.h) of a topology, which is what the price model takes from it.
#pragma once

#include "plan/price.h"
#include "topology/topology.h"

namespace fccl::plan {

// Of a topology whose hosts all have ranks and NICs. Its rails are the different NICs that serve the columns of a host.
Shape shape_of(const Topology& topology, const Constants& constants);

// In megabits per second; 0 if the speed of some NIC is not known, or there is none.
int slowest_nic(const Topology& topology);

}  // namespace fccl::plan
