// ProcessWatch: knows whether a process of this host is still alive.
#pragma once

#include <memory>

#include "base/result.h"
#include "system/descriptor.h"

namespace fccl {

// Watches one process by a pidfd, so that a pid that is used again is not mistaken for it. Shared: all communicators of this
// process hold one watch, hence one descriptor, per watched process. Any thread may call. The own process is always alive and
// costs no descriptor.
class ProcessWatch {
 public:
  // fcclRemoteError if there is no such process now.
  static Result<std::shared_ptr<ProcessWatch>> of(int pid);

  // False from the moment that the process has ended, also while its parent has not waited for it.
  bool alive() const;
  // Becomes readable when the process ends, and stays so; -1 for this process.
  int descriptor() const { return pidfd_.get(); }

 private:
  explicit ProcessWatch(Descriptor pidfd) : pidfd_(std::move(pidfd)) {}

  Descriptor pidfd_;  // none: this process
};

}  // namespace fccl
