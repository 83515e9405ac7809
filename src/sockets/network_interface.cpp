// Lists the interfaces by getifaddrs, without those that lead to no other host.
#include "sockets/network_interface.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "os/error_text.h"

namespace fccl::core {
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
    // A link-local address needs the interface's number, which other hosts do not share.
    if (IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr)) return std::nullopt;
    address.v6 = true;
    std::memcpy(address.bytes.data(), &in6.sin6_addr, 16);
    return address;
  }
  return std::nullopt;
}

bool is_container_bridge(std::string_view name) {
  return name.starts_with("docker") || name.starts_with("virbr") || name.starts_with("cni") || name.starts_with("br-");
}

}  // namespace

Result<std::vector<InterfaceAddress>> interface_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0)
    return fail(system_error(errno), fmt::format("cannot list the network interfaces of this host: {}", error_text(errno)));
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> entries(first, ::freeifaddrs);
  std::vector<InterfaceAddress> addresses;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next)
    if (const std::optional<Address> address = usable_address(*entry))
      addresses.push_back(
          {entry->ifa_name, *address, (entry->ifa_flags & IFF_LOOPBACK) != 0, is_container_bridge(entry->ifa_name)});
  return addresses;
}

std::string to_text(const std::vector<InterfaceAddress>& addresses) {
  std::string text;
  for (const InterfaceAddress& each : addresses)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", each.interface_name, host_text(each.address));
  return text;
}

Result<std::vector<std::string>> usable_interfaces() {
  FCCL_TRY_ASSIGN(const auto addresses, interface_addresses());
  std::vector<std::string> names;
  std::vector<std::string> loopback;
  for (const InterfaceAddress& each : addresses) {
    if (each.is_container_bridge) continue;
    std::vector<std::string>& kind = each.is_loopback ? loopback : names;
    if (std::find(kind.begin(), kind.end(), each.interface_name) == kind.end()) kind.push_back(each.interface_name);
  }
  return names.empty() ? loopback : names;
}

}  // namespace fccl::core
