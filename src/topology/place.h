// Place: the position of a device or a rank inside its host, and the distance between two places.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fccl::core {

// A PCI address, domain:bus:device.function, as Linux writes it: "0000:10:1b.0".
struct PciAddress {
  uint32_t domain = 0;
  uint8_t bus = 0, device = 0, function = 0;

  auto operator<=>(const PciAddress&) const = default;
};

std::string to_text(const PciAddress& address);
// Parses an address; returns nothing for any other text. The domain has one to eight digits, since NVIDIA's tools write eight.
std::optional<PciAddress> parse_pci_address(std::string_view text);

// A position inside one host; unknown parts are empty. Only places of the same host can be compared.
struct Place {
  std::optional<PciAddress> pci = {};
  std::optional<int> numa = {};
  std::vector<PciAddress> under = {};  // the PCI bridges and switches above it, from the root port down

  bool operator==(const Place&) const = default;
};

// Distances from near to far. If too little is known, two places count as far apart as possible.
enum class Distance : uint8_t {
  same_switch,  // both below one PCI switch or bridge: NCCL's PIX
  same_root,    // both below one root port, through several switches: NCCL's PXB
  same_numa,    // connected by the host bridge of one NUMA node: NCCL's PHB
  same_host,    // on different NUMA nodes: NCCL's SYS
};

Distance distance(const Place& a, const Place& b);
// Returns "same switch", "same root", "same NUMA node" or "same host".
const char* name_of(Distance distance);
// Returns "PIX", "PXB", "PHB" or "SYS".
const char* nccl_name_of(Distance distance);

}  // namespace fccl::core
