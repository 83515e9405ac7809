// Nic: a network device of a host, as a value.
#pragma once

#include <string>

#include "topology/place.h"

namespace fccl::core {

// One network device as a transport sees it: "eth0", "rdmap79s0".
struct Nic {
  std::string name;
  int megabits = 0;  // per second and direction; 0 if unknown
  Place place;

  bool operator==(const Nic&) const = default;
};

}  // namespace fccl::core
