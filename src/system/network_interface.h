// Which address of this host a listener should take.
#pragma once

#include <string>
#include <vector>

#include "system/socket.h"

namespace fccl {

// The address, with port 0, of the named interface, or ("") of the first that is up: no loopback before loopback, no bridge of
// containers before one, IPv4 before IPv6. The error lists what there is.
Result<Address> choose_address(const std::string& interface_name);

// The names of the interfaces over which other hosts may be reached, in the kernel's order: those that are up and have an
// address, but neither loopback nor bridges of containers; the loopback alone where there is no other.
Result<std::vector<std::string>> usable_interfaces();

}  // namespace fccl
