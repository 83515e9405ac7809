// NICs: lists the NICs that libfabric offers, and chooses those that become rails.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ofi/provider.h"
#include "sockets/socket.h"
#include "wire/transport.h"

namespace fccl::core::ofi {

// The infos that a transport's rails are opened from: one info per rail.
struct Nics {
  const Provider* provider = nullptr;
  std::vector<Info> rails;
};

// Finds the NICs for a user's request. The error says which provider was asked for, and which NICs exist.
Result<Nics> find_nics(const TransportRequest& request);

// Lists NICs with places and speeds, from libfabric and /sys, and the costs that are assumed of the provider. The error is like
// find_nics's.
Result<OfferedNics> list_nics(const NicsRequest& request);

// Says which offer a rail should be made of.
struct Wish {
  // The NIC's name, or its part before a "-"; "" for any.
  std::string_view nic;
  // Address of the interface, if it matters.
  std::optional<Address> address;
};

// Returns the first offer that fits and is the provider's own (libfabric adds layered ones), or nullptr.
const fi_info* choose_offer(const fi_info* offers, const Provider& provider, uint32_t installed, const Wish& wish);

// Returns the NICs that rails can be made of, each once, in the order of the offers; with only the PCI addresses of their
// places. It leaves out a NIC without a link, if libfabric knows.
std::vector<Nic> nics_in(const fi_info* offers, const Provider& provider, uint32_t installed);

}  // namespace fccl::core::ofi
