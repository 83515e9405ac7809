// The commands topology and rails: what is in this host, or in the hosts of a file.
#pragma once

#include <string>

#include "fccl_info/command.h"
#include "topology/topology.h"

namespace fccl::core {

Result<Topology> this_host();

// `words`: nothing for this host, or a file.
Result<std::string> describe_topology(Words words, Form form);
// `words`: a file.
Result<std::string> list_rails(Words words, Form form);

}  // namespace fccl::core
