// Reads the topology files that NCCL writes (NCCL_TOPO_DUMP_FILE) and takes (NCCL_TOPO_FILE).
#pragma once

#include <string_view>

#include "topology/topology.h"

namespace fccl::core {

// Parses an NCCL topology. It has one host, or several if the file names hosts by their hashes. The ranks of a host are those
// of its <gpu> elements, renumbered from 0 if the file lacks some ranks of the communicator. PCI devices with the class of a
// GPU or NIC count as such even if the file has no details, as in files made for NCCL_TOPO_FILE. Such a NIC is named by its
// address; such GPUs are numbered in order. Accepts any bytes. Error: fcclInvalidUsage, with the place in the file if there is
// one.
Result<Topology> parse_nccl_xml(std::string_view text);

}  // namespace fccl::core
