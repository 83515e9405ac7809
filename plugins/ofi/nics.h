// NICs: what libfabric offers, and which of it becomes a rail.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ofi/provider.h"
#include "sockets/socket.h"
#include "wire/transport.h"

namespace fccl::ofi {

// What the rails of a transport are opened from: one info per rail.
struct Nics {
  const Provider* provider = nullptr;
  std::vector<Info> rails;
};

// For a request as a user made it. The error says which provider was asked for, and which NICs there are.
Result<Nics> find_nics(const TransportRequest& request);

// What the plug-in's second door answers: with places and speeds, which libfabric and /sys tell. The error is as above.
Result<OfferedNics> list_nics(const NicsRequest& request);

// Which offer a rail is to be made of.
struct Wish {
  // Its name, or what stands before a "-" in it; "" for any.
  std::string_view nic;
  // Of the interface, if it matters.
  std::optional<Address> address;
};

// The first offer of the provider's own (libfabric adds layered ones) that fits, or nullptr.
const fi_info* choose_offer(const fi_info* offers, const Provider& provider, uint32_t installed, const Wish& wish);

// The NICs that rails can be made of, each once, in the order of the offers; of places only the PCI addresses. A NIC that
// libfabric knows to have no link is none of them.
std::vector<Nic> nics_in(const fi_info* offers, const Provider& provider, uint32_t installed);

}  // namespace fccl::ofi
