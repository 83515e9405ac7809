// Address: how other processes reach a rail of this one.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "ofi/endpoint.h"
#include "wire/transport.h"

namespace fccl::ofi {

// What an address says.
struct Destination {
  // A byte that all peers may write.
  RemoteMemory mailbox;
  // As libfabric calls the endpoint.
  std::vector<std::byte> name;
};

// Of this endpoint, whose peers may write a byte at `mailbox`.
Result<std::vector<std::byte>> address_of(const Endpoint& endpoint, const RemoteMemory& mailbox);
// What another process's address_of gave; an error if `endpoint` cannot reach it.
Result<Destination> read_address(const Endpoint& endpoint, std::span<const std::byte> address);

}  // namespace fccl::ofi
