// Carries the unique id of a new communicator from rank 0 to the other ranks through torch's Store.
#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "fccl/fccl.h"

namespace fccl::torch {

// Identifies a rank of a communicator that will be made.
struct Membership {
  int rank;
  int size;
  std::chrono::milliseconds timeout;
  std::string name;  // for messages
};

// Makes this rank's communicator of this kind of memory, on the thread's current device for CUDA memory; every rank calls it
// with a `key` of the store that is the communicator's own. Throws the failure; on every rank if rank 0 cannot open its
// bootstrap. `identity` gets a text that is the same on all ranks of the communicator, and unique to it.
fcclComm_t join(c10d::Store& store, const std::string& key, const Membership& membership, fcclMemoryKind_t kind,
                std::string* identity);

// Returns the library's configuration of a group with this timeout; the result refers to `membership`.
fcclConfig_t config_of(const Membership& membership, fcclMemoryKind_t kind);

// Converts to the library's range: positive and no larger than an int.
int clamped(std::chrono::milliseconds timeout);

}  // namespace fccl::torch
