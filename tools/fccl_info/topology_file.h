// topology_file: a topology from a file, in FCCL's text form or in NCCL's XML.
#pragma once

#include <string>

#include "topology/topology.h"

namespace fccl::core {

// Error: names the file, and the line if it has one.
Result<Topology> read_topology(const std::string& path);

}  // namespace fccl::core
