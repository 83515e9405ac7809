// Regions: memory as the NIC of one rail knows it.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "ofi/endpoint.h"
#include "wire/transport.h"

namespace fccl::ofi {

// Memory that a NIC may use, until this is destroyed. Owned by a rail.
struct Region {
  MemoryRegion handle;
  // What operations of this process pass along.
  void* descriptor = nullptr;
  // What peers address it by.
  RemoteMemory remote;
};

// `access` is what libfabric calls the rights of this process and of its peers (FI_SEND, FI_REMOTE_WRITE). The key is random,
// of as many bits as the provider takes, so that nobody finds it by trying; where the provider chooses keys, it is the
// provider's (docs/security.md).
Result<Region> open_region(const Endpoint& endpoint, std::span<std::byte> memory, uint64_t access);

}  // namespace fccl::ofi
