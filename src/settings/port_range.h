// PortRange: the ports that FCCL_SOCKET_PORTS allows.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fccl::core {

struct PortRange {
  uint16_t first = 0;
  uint16_t last = 0;
};

// Parses "29600" or "29600-29699"; returns nothing for any other text.
inline std::optional<PortRange> port_range_in(std::string_view text) {
  const auto port_in = [](std::string_view digits) -> std::optional<uint16_t> {
    uint16_t port = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    return error == std::errc{} && end == digits.data() + digits.size() && port > 0 ? std::optional(port) : std::nullopt;
  };
  const size_t dash = text.find('-');
  const std::optional<uint16_t> first = port_in(text.substr(0, dash));
  const std::optional<uint16_t> last = dash == std::string_view::npos ? first : port_in(text.substr(dash + 1));
  return first && last && *first <= *last ? std::optional(PortRange{*first, *last}) : std::nullopt;
}

}  // namespace fccl::core
