// Lending: device memory that one rank of a case makes and others map.
#pragma once

#include "sharing.h"
#include "team.h"

namespace fccl::gpu {

// The lender must keep its memory until all borrowers have given their mappings back.

void lend(Rank& rank, int to, const DeviceMemory& memory);
IpcMapping borrow_by_ipc(Rank& rank, int from);

void lend(Rank& rank, int to, const PhysicalMemory& memory);
PhysicalMemory borrow_by_descriptor(Rank& rank, int from);

}  // namespace fccl::gpu
