// Endpoint: what a rail is made of in libfabric.
#pragma once

#include <cstddef>
#include <string>

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

// "Connection refused" for the negative numbers that libfabric returns.
std::string said(ssize_t number);
// "1.17", of the libfabric that is there at run time.
std::string installed_version();
// The error of a call of libfabric that prepares something.
tl::unexpected<Error> cannot(const Endpoint& endpoint, std::string_view what, ssize_t number);

}  // namespace fccl::ofi
