// SignalHandlers: what a process does on each signal, kept where a library that is loaded would change it.
#pragma once

#include <signal.h>

#include <array>

namespace fccl {

// Lives on the stack of a thread that runs code of others. At the end of its life the process has the handlers that it had at
// the beginning; one that another thread sets meanwhile is lost.
class SignalHandlers {
 public:
  SignalHandlers();
  SignalHandlers(const SignalHandlers&) = delete;
  SignalHandlers& operator=(const SignalHandlers&) = delete;
  ~SignalHandlers();

 private:
  std::array<struct sigaction, NSIG> before_{};  // by signal
  sigset_t mask_{};
};

}  // namespace fccl
