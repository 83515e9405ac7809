// Carries the unique id of a new communicator from rank 0 to the other ranks through torch's Store.
#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "fccl/fccl.h"

namespace fccl {

// What a communicator is made from.
struct Membership {
  int rank;
  int size;
  std::chrono::milliseconds timeout;
  std::string name;  // for messages
};

// Makes this rank's communicator of this kind of memory, on the thread's current device if that is CUDA's; every rank calls it
// with a `key` of the store that is the communicator's own. Throws what went wrong, on every rank when rank 0 cannot open its
// bootstrap. `identity` gets a text that is the communicator's own, and the same on all its ranks.
fcclComm_t join(c10d::Store& store, const std::string& key, const Membership& membership, fcclMemoryKind_t kind,
                std::string* identity);

// The library's configuration of a group with this timeout; it refers to `membership`.
fcclConfig_t config_of(const Membership& membership, fcclMemoryKind_t kind);

// As the library takes it: positive and no larger than an int.
int clamped(std::chrono::milliseconds timeout);

}  // namespace fccl
