// Strangers: what somebody without a place in the job does to the doors of a communicator that is being made.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "channels/unique_id.h"

namespace fccl::core::testing {

// The target of an attack: the TCP listener of the root, or the abstract unix listener from which ranks get the shared segment.
struct Door {
  UniqueId id;
  std::string local_name;  // "" = the TCP listener
};

// Returns true while the attack goes on; called often, and first when all attackers are in place.
using GoesOn = std::function<bool()>;

struct Attack {
  const char* name;
  void (*run)(const Door& door, const GoesOn& goes_on);
};

// Every attack; each fits both doors.
const std::vector<Attack>& every_attack();

// The name of the abstract unix listener of a process; "" while it has none.
std::string local_listener_of(int pid);

}  // namespace fccl::core::testing
