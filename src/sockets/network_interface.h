// The network interfaces through which other hosts may reach this one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sockets/socket.h"

namespace fccl::core {

// One address of an interface that is up. An interface may have several.
struct InterfaceAddress {
  std::string interface_name;
  Address address;  // with port 0
  bool is_loopback = false;
  bool is_container_bridge = false;  // connects containers of this host only
};

// Lists addresses in the kernel's order, without link-local IPv6 addresses, which mean nothing on another host.
Result<std::vector<InterfaceAddress>> interface_addresses();

// Returns a text such as "lo (127.0.0.1), eth0 (192.0.2.2)".
std::string to_text(const std::vector<InterfaceAddress>& addresses);

// Returns the interfaces that may reach other hosts, in the kernel's order: those that are up and have an address, without
// loopback and bridges of containers. Returns the loopback if there is no other.
Result<std::vector<std::string>> usable_interfaces();

}  // namespace fccl::core
