// The network interfaces of this host, as far as other hosts may reach it by them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sockets/socket.h"

namespace fccl {

// One address of an interface that is up. An interface may have several.
struct InterfaceAddress {
  std::string interface_name;
  Address address;  // with port 0
  bool is_loopback = false;
  bool is_container_bridge = false;  // joins only the containers of this host
};

// In the kernel's order, without IPv6 addresses that mean nothing on another host.
Result<std::vector<InterfaceAddress>> interface_addresses();

// "lo (127.0.0.1), eth0 (192.0.2.2)".
std::string to_text(const std::vector<InterfaceAddress>& addresses);

// The names of the interfaces over which other hosts may be reached, in the kernel's order: those that are up and have an
// address, but neither loopback nor bridges of containers; the loopback alone where there is no other.
Result<std::vector<std::string>> usable_interfaces();

}  // namespace fccl
