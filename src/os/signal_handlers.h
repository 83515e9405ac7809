// SignalHandlers: protects the process's signal handlers from a library that is being loaded.
#pragma once

#include <signal.h>

#include <array>

namespace fccl::core {

// Lives on the stack of a thread that runs foreign code. Its destructor restores the handlers that the process had at its
// construction; a handler that another thread sets in between is lost.
class SignalHandlers {
 public:
  SignalHandlers();
  SignalHandlers(const SignalHandlers&) = delete;
  SignalHandlers& operator=(const SignalHandlers&) = delete;
  ~SignalHandlers();

 private:
  std::array<struct sigaction, NSIG> before_{};  // indexed by signal
  sigset_t mask_{};
};

}  // namespace fccl::core
