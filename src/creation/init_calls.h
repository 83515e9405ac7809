// InitCalls: runs the calls by which the ranks of a communicator that is being made find each other.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/call.h"
#include "base/result.h"
#include "os/clock.h"

namespace fccl::core {

struct CommunicatorState;

// A Creation owns it, and its thread uses it; it reads a state that it does not own, and advances its count of calls. All calls
// have one deadline, that of the creation. A failure is the communicator's first one: no call may follow.
class InitCalls {
 public:
  InitCalls(CommunicatorState& state, Deadline deadline);

  Result<void> barrier();
  // Gives every rank the bytes of every rank; only of this host, until the lanes span the hosts.
  Result<void> exchange(const void* mine, void* all, size_t bytes);
  // Every rank sends every rank a block of `block` bytes.
  Result<void> swap(const void* given, void* taken, size_t block);

 private:
  Result<void> run(const Call& call);
  std::chrono::milliseconds timeout() const;

  CommunicatorState& state_;
  Deadline deadline_;
  std::chrono::microseconds nap_;
};

}  // namespace fccl::core
