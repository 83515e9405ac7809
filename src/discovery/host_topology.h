// Discovers the NICs and GPUs of this host, and their places.
#pragma once

#include "topology/topology.h"

namespace fccl::core {

// Returns this host without ranks: the network interfaces that are up in the process's network namespace, without the loopback;
// the RDMA devices; the GPUs, numbered by PCI address. hwloc finds the places; they are empty if it sees no PCI, as in many
// containers. Devices are in the order of their PCI addresses; those without one come last, by name. One card may appear both
// as an interface and as an RDMA device; the caller picks the NICs of a transport by name. Only reads files, which takes some
// milliseconds; any thread may call. Error: fcclSystemError.
Result<Host> discover_host();

}  // namespace fccl::core
