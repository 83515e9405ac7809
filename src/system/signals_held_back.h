// SignalsHeldBack: no signal comes to a thread for a while.
#pragma once

#include <signal.h>

#include <initializer_list>

namespace fccl {

// Lives on the stack. While it does, this thread and those that it starts take no signal that is meant for the application;
// another thread takes it, or this one afterwards. Those of a thread's own faults come: a fault that is blocked would end the
// process without a word to whoever reports crashes.
class SignalsHeldBack {
 public:
  SignalsHeldBack() {
    sigset_t others;
    sigfillset(&others);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&others, fault);
    pthread_sigmask(SIG_BLOCK, &others, &before_);
  }
  ~SignalsHeldBack() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeldBack(const SignalsHeldBack&) = delete;
  SignalsHeldBack& operator=(const SignalsHeldBack&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace fccl
