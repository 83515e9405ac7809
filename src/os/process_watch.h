// ProcessWatch: tells whether a process of this host is still alive.
#pragma once

#include <memory>

#include "base/result.h"
#include "os/descriptor.h"

namespace fccl::core {

// Watches one process by a pidfd, so that a reused pid cannot be mistaken for it. All communicators of this process share one
// watch, hence one descriptor, per watched process. Any thread may call. This process itself is always alive and needs no
// descriptor.
class ProcessWatch {
 public:
  // Returns the watch of a process; fcclRemoteError if there is no such process now.
  static Result<std::shared_ptr<ProcessWatch>> of(int pid);

  // Returns false as soon as the process has ended, even before its parent has waited for it.
  bool alive() const;
  // Returns a descriptor that becomes readable when the process ends, and stays so; -1 for this process.
  int descriptor() const { return pidfd_.get(); }

 private:
  explicit ProcessWatch(Descriptor pidfd) : pidfd_(std::move(pidfd)) {}

  Descriptor pidfd_;  // empty for this process
};

}  // namespace fccl::core
