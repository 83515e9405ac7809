// Attacks: what somebody can post who knows where an endpoint listens, and nothing else.
#pragma once

#include <cstdint>
#include <span>

#include "attack/fabric_end.h"

namespace fccl::core::attack {

struct Attack {
  const char* name;
  // Posts the number-th operation to a peer; what libfabric says.
  ssize_t (*post)(FabricEnd& end, fi_addr_t peer, uint64_t number);
};

std::span<const Attack> attacks();

}  // namespace fccl::core::attack
