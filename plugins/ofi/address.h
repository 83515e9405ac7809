// Address: how other processes reach a rail of this one.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "ofi/endpoint.h"
#include "wire/transport.h"

namespace fccl::ofi {

// What peers must know of an endpoint beside its name.
struct Secrets {
  // A byte that all peers may write.
  RemoteMemory mailbox;
  // What stands above the immediate of each of their writes; 0 where the provider carries no more than an immediate.
  uint32_t notice_token = 0;
};

// What an address says.
struct Destination : Secrets {
  // As libfabric calls the endpoint.
  std::vector<std::byte> name;
};

// As libfabric calls this endpoint.
Result<std::vector<std::byte>> name_of(const Endpoint& endpoint);
// Of this endpoint. Whoever has it may use the endpoint, so it is told to its peers alone.
Result<std::vector<std::byte>> address_of(const Endpoint& endpoint, const Secrets& secrets);
// What another process's address_of gave; an error if `endpoint` cannot reach it.
Result<Destination> read_address(const Endpoint& endpoint, std::span<const std::byte> address);

}  // namespace fccl::ofi
