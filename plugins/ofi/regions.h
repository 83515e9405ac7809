// Regions: memory registered with the NIC of one rail.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "ofi/endpoint.h"
#include "wire/transport.h"

namespace fccl::core::ofi {

// Memory that a NIC may use, until this is destroyed. A rail owns it.
struct Region {
  MemoryRegion handle;
  // Operations of this process pass this along.
  void* descriptor = nullptr;
  // Peers address the memory by this.
  RemoteMemory remote;
};

// `access` holds the rights of this process and of its peers, in libfabric's terms (FI_SEND, FI_REMOTE_WRITE). The key is
// random, with as many bits as the provider takes, so that it cannot be guessed; a provider that chooses keys itself uses its
// own (docs/explanation/security.md).
Result<Region> open_region(const Endpoint& endpoint, std::span<std::byte> memory, uint64_t access);

}  // namespace fccl::core::ofi
