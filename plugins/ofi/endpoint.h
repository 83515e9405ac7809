// Endpoint: what a rail is made of in libfabric.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ofi/handles.h"
#include "ofi/provider.h"

namespace fccl::ofi {

// One NIC's objects, each after those that it uses. Owned by a rail; one thread at a time.
struct Endpoint {
  const Provider* provider = nullptr;
  Info info;
  Fabric fabric;
  Domain domain;
  AddressVector addresses;
  CompletionQueue completions;
  EndpointHandle handle;

  // "tcp on eth0".
  std::string text() const;
  bool has_virtual_addresses() const { return (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0; }
};

// `operations` and `messages` are how many of this process's may be under way.
struct Room {
  size_t operations = 0;
  size_t messages = 0;
};

Result<Endpoint> open_endpoint(const Provider& provider, Info info, Room room);

// Whether the NIC writes by itself.
bool writes_natively(const Endpoint& endpoint);

// How others name this endpoint: its protocol, then libfabric's own name.
Result<std::vector<std::byte>> name_of(const Endpoint& endpoint);
// libfabric's name out of what another process's name_of gave; an error if `endpoint` cannot reach it.
Result<std::span<const std::byte>> libfabric_name_in(const Endpoint& endpoint, std::span<const std::byte> name);

// "Connection refused" for the negative numbers that libfabric returns.
std::string said(ssize_t number);
// "1.17", of the libfabric that is there at run time.
std::string installed_version();

}  // namespace fccl::ofi
