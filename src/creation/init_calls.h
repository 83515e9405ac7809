// InitCalls: the calls by which the ranks of a communicator that is being made find each other.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/call.h"
#include "base/result.h"
#include "system/clock.h"

namespace fccl {

struct Parts;

// Owned by a Creation and used by its thread; reads and counts on in parts that it does not own. All calls have one deadline,
// that of the creation. A failure is the communicator's first one: no call may follow.
class InitCalls {
 public:
  InitCalls(Parts& parts, Deadline deadline);

  Result<void> barrier();
  // Every rank gets every rank's bytes; of this host, until the lanes span the hosts.
  Result<void> exchange(const void* mine, void* all, size_t bytes);
  // Every rank gives every rank a block of so many bytes.
  Result<void> swap(const void* given, void* taken, size_t block);

 private:
  Result<void> run(const Call& call);
  std::chrono::milliseconds timeout() const;

  Parts& parts_;
  Deadline deadline_;
  std::chrono::microseconds nap_;
};

}  // namespace fccl
