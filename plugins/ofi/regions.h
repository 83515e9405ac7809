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

// `wanted_key` is one that no other region of the rail has; a provider may choose another.
Result<Region> open_region(const Endpoint& endpoint, std::span<std::byte> memory, uint64_t wanted_key);

}  // namespace fccl::ofi
