// Place: where a device or a rank sits inside its host, and how far two places are from each other.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fccl {

// domain:bus:device.function, as Linux writes it: "0000:10:1b.0".
struct PciAddress {
  uint32_t domain = 0;
  uint8_t bus = 0, device = 0, function = 0;

  auto operator<=>(const PciAddress&) const = default;
};

std::string to_text(const PciAddress& address);
// Takes domains of one to eight digits, since NVIDIA's tools write eight; nothing where the text is no address.
std::optional<PciAddress> parse_pci_address(std::string_view text);

// What is not known is empty. Places of one host can be compared; those of two hosts have nothing to do with each other.
struct Place {
  std::optional<PciAddress> pci = {};
  std::optional<int> numa = {};
  std::vector<PciAddress> under = {};  // the PCI bridges and switches above it, from the root port down

  bool operator==(const Place&) const = default;
};

// From near to far. Where too little is known to tell, two places are as far apart as a host allows.
enum class Distance : uint8_t {
  same_switch,  // below one PCI switch or bridge: NCCL's PIX
  same_root,    // below one root port, by way of several switches: NCCL's PXB
  same_numa,    // by way of the host bridge of their NUMA node: NCCL's PHB
  same_host,    // between NUMA nodes: NCCL's SYS
};

Distance distance(const Place& a, const Place& b);
// "same switch", ...
const char* name_of(Distance distance);
// "PIX", "PXB", "PHB", "SYS".
const char* nccl_name_of(Distance distance);

}  // namespace fccl
