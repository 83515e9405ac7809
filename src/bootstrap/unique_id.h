// UniqueId: what the 128 bytes of an fcclUniqueId say.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "bootstrap/key.h"
#include "fccl/fccl.h"
#include "system/socket.h"

namespace fccl {

// Names one communicator to be. Whoever has it may join, so it is as secret as the way on which the user hands it on.
struct UniqueId {
  Address root;             // where the process that made the id listens
  uint64_t generation = 0;  // random: tells ids of one root apart in messages
  Key key{};

  bool operator==(const UniqueId&) const = default;
};

fcclUniqueId to_c(const UniqueId& id);
// fcclInvalidArgument for bytes that fcclGetUniqueId of this format never made: zeroed, cut, damaged.
Result<UniqueId> from_c(const fcclUniqueId& bytes);

}  // namespace fccl
