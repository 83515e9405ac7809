// The address and port of this host that a listener of the bootstrap takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sockets/socket.h"

namespace fccl::core {

struct InterfaceAddress;
struct Settings;

// The reason for choosing an interface. It travels in the unique id as a number.
enum class ChosenBy : uint8_t { fccl_variable, nccl_variable, gloo_variable, master_address, default_route, order };

struct ListeningAddress {
  Address address;  // with port 0
  std::string interface_name;
  ChosenBy by = ChosenBy::order;
};

// Returns a text such as "eth0, the interface of the default route".
std::string describe(const std::string& interface_name, ChosenBy by);

// Chooses the address to listen at. The first variable that is set of FCCL_SOCKET_IFNAME, NCCL_SOCKET_IFNAME and
// GLOO_SOCKET_IFNAME limits the interfaces. The first two use NCCL's grammar: prefixes of names, separated by commas; "=" in
// front asks for whole names, "^" in front excludes the names. The third lists whole names. If a variable names interfaces, the
// earliest name wins. Otherwise the order is: the interface that reaches MASTER_ADDR, the interface of the default route, the
// first one that is up. In that last step the loopback comes last and bridges of containers just before it; IPv4 precedes IPv6.
// Error: fcclInvalidUsage with the present interfaces if FCCL_SOCKET_IFNAME excludes all. If one of the other two excludes all,
// it is ignored, with one warning.
Result<ListeningAddress> choose_address(const Settings& settings);
Result<ListeningAddress> choose_address(const Settings& settings, const std::vector<InterfaceAddress>& all);

// Listens there, on a port of FCCL_SOCKET_PORTS or, if that is not set, on a port that the system chooses.
Result<Descriptor> listen_at(const ListeningAddress& where, const Settings& settings);
// Holds such a port, as hold_port does. Takes any port if all of FCCL_SOCKET_PORTS are in use.
Result<Descriptor> hold_at(const Address& where, const Settings& settings);

}  // namespace fccl::core
