// Address: the bytes by which other processes reach a rail of this one.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "ofi/endpoint.h"
#include "wire/transport.h"

namespace fccl::core::ofi {

// Secrets of an endpoint that its peers need besides its name.
struct Secrets {
  // A byte that all peers may write.
  RemoteMemory mailbox;
  // Peers put this above the immediate of each write; 0 where the provider carries no more than an immediate.
  uint32_t notice_token = 0;
};

// The contents of an address.
struct Destination : Secrets {
  // The endpoint's name in libfabric.
  std::vector<std::byte> name;
};

// Returns this endpoint's name in libfabric.
Result<std::vector<std::byte>> name_of(const Endpoint& endpoint);
// Returns this endpoint's address. Any process that has it may use the endpoint, so only peers are told it.
Result<std::vector<std::byte>> address_of(const Endpoint& endpoint, const Secrets& secrets);
// Reads an address that another process's address_of returned; an error if `endpoint` cannot reach it.
Result<Destination> read_address(const Endpoint& endpoint, std::span<const std::byte> address);

}  // namespace fccl::core::ofi
