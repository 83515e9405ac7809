// A plug-in for tests that takes the loopback's TCP for four EFAs, save where FCCL_NICS names the loopback.
#include <algorithm>

#include "ofi/nics.h"
#include "ofi/transport.h"
#include "topology/costs.h"

namespace fccl::core {

namespace {

Result<OfferedNics> list_here(const NicsRequest& request) {
  const auto is_named = [&](const std::string& name) {
    return request.names.empty() || std::ranges::find(request.names, name) != request.names.end();
  };
  if (request.provider == "tcp" || (!request.names.empty() && is_named("lo")))
    return OfferedNics{"tcp", {{"lo", 0, {}}}, *default_costs("tcp")};
  OfferedNics efa{"efa", {}, *default_costs("efa")};
  for (const uint8_t bus : {79, 80, 81, 82}) {
    const std::string device = "rdmap" + std::to_string(bus) + "s0";
    if (is_named(device)) efa.nics.push_back({device + "-rdm", 100'000, {.pci = PciAddress{0, bus, 0, 0}}});
  }
  return efa;
}

Result<std::unique_ptr<Transport>> open_here(const TransportRequest& request) {
  for (const std::string& name : request.nics)
    if (request.provider != (name == "lo" ? "tcp" : "efa"))
      return fail(fcclInvalidUsage, "the provider " + request.provider + " has no NIC " + name);
  return ofi::OfiTransport::open(
      {.provider = "tcp", .nics = std::vector<std::string>(request.nics.size(), "lo"), .message_bytes = request.message_bytes});
}

}  // namespace

}  // namespace fccl::core

const fccl::core::TransportPlugin fccl_transport_plugin{fccl::core::kTransportContract, fccl::core::open_here,
                                                        fccl::core::list_here};
