// Endpoint: the libfabric objects of a rail.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "ofi/handles.h"
#include "ofi/provider.h"

namespace fccl::core::ofi {

// The objects of one NIC, each after the objects that it uses. A rail owns it; one thread at a time.
struct Endpoint {
  const Provider* provider = nullptr;
  Info info;
  Fabric fabric;
  Domain domain;
  AddressVector addresses;
  CompletionQueue completions;
  EndpointHandle handle;

  // Returns "tcp on eth0".
  std::string text() const;
  bool has_virtual_addresses() const { return (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0; }
};

// Numbers of this process's operations and messages that may be in flight.
struct Room {
  size_t operations = 0;
  size_t messages = 0;
};

Result<Endpoint> open_endpoint(const Provider& provider, Info info, Room room);

// Returns "Connection refused" and the like for the negative numbers that libfabric returns.
std::string said(ssize_t number);
// Returns the version of the libfabric at run time: "1.17".
std::string installed_version();
// Makes the error of a libfabric call that prepares something.
tl::unexpected<Error> cannot(const Endpoint& endpoint, std::string_view what, ssize_t number);

}  // namespace fccl::core::ofi
