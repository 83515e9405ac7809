// Reads what NCCL writes with NCCL_TOPO_DUMP_FILE and takes from NCCL_TOPO_FILE.
#pragma once

#include <string_view>

#include "topology/topology.h"

namespace fccl {

// The hosts of an NCCL topology: one, or several where the file names hosts by their hashes. A host's ranks are those of its
// <gpu>s, counted from 0 in their order if the file does not have all ranks of the communicator. PCI devices of the classes of
// GPUs and NICs count as such also where the file says no more of them, as files made for NCCL_TOPO_FILE do; such a NIC is
// named by its address, and such GPUs are counted. Any bytes will do as input.
// Error: fcclInvalidUsage, with the place in the file where there is one.
Result<Topology> parse_nccl_xml(std::string_view text);

}  // namespace fccl
