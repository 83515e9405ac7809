// Finds out what the host of this process has: NICs, GPUs, and where they sit.
#pragma once

#include "topology/topology.h"

namespace fccl {

// This host without ranks: the network interfaces of the process's network namespace that are up, save the loopback; the RDMA
// devices; the GPUs, numbered by their PCI addresses. Places are those that hwloc finds, and empty where it sees no PCI, as in
// many containers. Devices are in the order of their PCI addresses, those without one last, by name. A transport uses some of
// the NICs, which the caller picks by name: a card may be there both as an interface and as an RDMA device.
// Reads files only, which takes some milliseconds; any thread may call. Error: fcclSystemError.
Result<Host> discover_host();

}  // namespace fccl
