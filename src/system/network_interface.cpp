// Which address of this host a listener should take.
#include "system/network_interface.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>

namespace fccl {
namespace {

std::optional<Address> usable_address(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0) return std::nullopt;
  Address address;
  if (entry.ifa_addr->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, entry.ifa_addr, sizeof(in));
    std::memcpy(address.bytes.data(), &in.sin_addr, 4);
    return address;
  }
  if (entry.ifa_addr->sa_family == AF_INET6) {
    sockaddr_in6 in6{};
    std::memcpy(&in6, entry.ifa_addr, sizeof(in6));
    // A link-local address means nothing without the number that the interface has on this host alone.
    if (IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr)) return std::nullopt;
    address.v6 = true;
    std::memcpy(address.bytes.data(), &in6.sin6_addr, 16);
    return address;
  }
  return std::nullopt;
}

// Other hosts cannot reach a bridge that joins only the containers of this one.
bool is_container_bridge(std::string_view name) {
  return name.starts_with("docker") || name.starts_with("virbr") || name.starts_with("cni") || name.starts_with("br-");
}

using Entries = std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)>;

Result<Entries> list_interfaces() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0)
    return fail(fcclSystemError, fmt::format("cannot list the network interfaces of this host: {}", error_text(errno)));
  return Entries(first, ::freeifaddrs);
}

}  // namespace

Result<std::vector<std::string>> usable_interfaces() {
  const auto entries = list_interfaces();
  if (!entries) return fail(entries.error());
  std::vector<std::string> names;
  std::vector<std::string> loopback;
  for (const ifaddrs* entry = entries->get(); entry != nullptr; entry = entry->ifa_next) {
    if (!usable_address(*entry) || is_container_bridge(entry->ifa_name)) continue;
    std::vector<std::string>& kind = (entry->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : names;
    if (std::find(kind.begin(), kind.end(), entry->ifa_name) == kind.end()) kind.emplace_back(entry->ifa_name);
  }
  return names.empty() ? loopback : names;
}

Result<Address> choose_address(const std::string& interface_name) {
  const auto entries = list_interfaces();
  if (!entries) return fail(entries.error());
  std::optional<Address> best;
  std::tuple<bool, bool, bool> best_drawbacks;
  std::string seen;
  for (const ifaddrs* entry = entries->get(); entry != nullptr; entry = entry->ifa_next) {
    const std::optional<Address> address = usable_address(*entry);
    if (!address) continue;
    const std::string name = entry->ifa_name;
    seen += fmt::format("{}{} ({})", seen.empty() ? "" : ", ", name, to_text(*address).substr(0, to_text(*address).rfind(':')));
    if (!interface_name.empty() && name != interface_name) continue;
    const std::tuple drawbacks{(entry->ifa_flags & IFF_LOOPBACK) != 0, is_container_bridge(name), address->v6};
    if (best && drawbacks >= best_drawbacks) continue;
    best = address;
    best_drawbacks = drawbacks;
  }
  if (best) return *best;
  if (interface_name.empty()) return fail(fcclSystemError, "no network interface of this host is up, not even the loopback");
  return fail(fcclInvalidUsage,
              fmt::format("FCCL_SOCKET_IFNAME asks for the interface \"{}\", which this host does not have or "
                          "which is down; up are: {}",
                          interface_name, seen));
}

}  // namespace fccl
