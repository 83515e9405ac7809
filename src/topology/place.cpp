// Parses and prints PCI addresses, and compares places.
#include "topology/place.h"

#include <fmt/format.h>

#include <charconv>

namespace fccl::core {
namespace {

// Parses a hexadecimal number of at most `digits` digits at the front of the text, and removes it and the mark after it.
std::optional<uint32_t> take_hex(std::string_view& text, size_t digits, std::string_view mark) {
  const size_t size = mark.empty() ? text.size() : text.find(mark);
  if (size == std::string_view::npos || size == 0 || size > digits) return std::nullopt;
  const std::string_view number = text.substr(0, size);
  uint32_t value = 0;
  const auto [end, fault] = std::from_chars(number.data(), number.data() + number.size(), value, 16);
  if (fault != std::errc() || end != number.data() + number.size()) return std::nullopt;
  text.remove_prefix(size + mark.size());
  return value;
}

}  // namespace

std::string to_text(const PciAddress& address) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", address.domain, address.bus, address.device, address.function);
}

std::optional<PciAddress> parse_pci_address(std::string_view text) {
  const auto domain = take_hex(text, 8, ":");
  const auto bus = domain ? take_hex(text, 2, ":") : std::nullopt;
  const auto device = bus ? take_hex(text, 2, ".") : std::nullopt;
  const auto function = device ? take_hex(text, 1, "") : std::nullopt;
  if (!function) return std::nullopt;
  return PciAddress{*domain, static_cast<uint8_t>(*bus), static_cast<uint8_t>(*device), static_cast<uint8_t>(*function)};
}

Distance distance(const Place& a, const Place& b) {
  if (!a.under.empty() && !b.under.empty()) {
    if (a.under.back() == b.under.back()) return Distance::same_switch;
    if (a.under.front() == b.under.front()) return Distance::same_root;
  }
  return a.numa && a.numa == b.numa ? Distance::same_numa : Distance::same_host;
}

const char* name_of(Distance distance) {
  constexpr const char* kNames[] = {"same switch", "same root", "same NUMA node", "same host"};
  return kNames[static_cast<size_t>(distance)];
}

const char* nccl_name_of(Distance distance) {
  constexpr const char* kNames[] = {"PIX", "PXB", "PHB", "SYS"};
  return kNames[static_cast<size_t>(distance)];
}

}  // namespace fccl::core
