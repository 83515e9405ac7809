// NICs: which of what libfabric offers becomes a rail.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ofi/provider.h"
#include "system/socket.h"
#include "wire/transport.h"

namespace fccl::ofi {

// What the rails of a transport are opened from: one info per rail.
struct Nics {
  const Provider* provider = nullptr;
  std::vector<Info> rails;
};

// For a request as a user made it. The error says which provider was asked for, and which NICs there are.
Result<Nics> find_nics(const TransportRequest& request);

// The first offer of the provider's own (libfabric adds layered ones) for the NIC of this name, or nullptr. With an `address`
// an offer must be at it; a name of "" is any.
const fi_info* choose_offer(const fi_info* offers, const Provider& provider, std::string_view nic,
                            const std::optional<Address>& address);

}  // namespace fccl::ofi
