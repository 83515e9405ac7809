// SignalsHeldBack: blocks signals to a thread for a while.
#pragma once

#include <signal.h>

#include <initializer_list>

namespace fccl::core {

// Lives on the stack. Meanwhile this thread, and threads that it starts, take no signal meant for the application; another
// thread takes it, or this one afterwards. A thread's own faults still arrive: a blocked fault would end the process before a
// crash handler could report it.
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

}  // namespace fccl::core
