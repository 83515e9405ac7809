// Which address and port of this host a listener of the bootstrap takes, and why.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sockets/network_interface.h"
#include "sockets/socket.h"
#include "system/settings.h"

namespace fccl {

// Who chose an interface. Travels in the unique id as a number.
enum class ChosenBy : uint8_t { fccl_variable, nccl_variable, gloo_variable, master_address, default_route, order };

struct ListeningAddress {
  Address address;  // with port 0
  std::string interface_name;
  ChosenBy by = ChosenBy::order;
};

// "eth0, the interface of the default route".
std::string describe(const std::string& interface_name, ChosenBy by);

// The first that is set of FCCL_SOCKET_IFNAME, NCCL_SOCKET_IFNAME (both in NCCL's grammar: names or beginnings of names with
// commas between, "=" in front where names must be whole, "^" in front to leave those out) and GLOO_SOCKET_IFNAME (whole names)
// says which interfaces may be taken. Of those that are named, the first in the order of the names. Else the one that reaches
// MASTER_ADDR, else that of the default route, else the first that is up: no loopback before loopback, no bridge of containers
// before one, IPv4 before IPv6. Error: fcclInvalidUsage where FCCL_SOCKET_IFNAME leaves none, with what there is; the other
// two leave all then, which is logged once.
Result<ListeningAddress> choose_address(const Settings& settings);
Result<ListeningAddress> choose_address(const Settings& settings, const std::vector<InterfaceAddress>& all);

// Listens there, on a port of FCCL_SOCKET_PORTS, or on one that the system chooses.
Result<Descriptor> listen_at(const ListeningAddress& where, const Settings& settings);
// Keeps such a port, as hold_port does; any port where all of those are taken.
Result<Descriptor> hold_at(const Address& where, const Settings& settings);

}  // namespace fccl
