// Reads every handler by sigaction, and restores those that changed.
#include "os/signal_handlers.h"

namespace fccl::core {
namespace {

bool is_same(const struct sigaction& a, const struct sigaction& b) {
  if (((a.sa_flags ^ b.sa_flags) & SA_SIGINFO) != 0) return false;
  return (a.sa_flags & SA_SIGINFO) != 0 ? a.sa_sigaction == b.sa_sigaction : a.sa_handler == b.sa_handler;
}

}  // namespace

// sigaction fails for the C library's own signals, so they are neither saved nor restored.
SignalHandlers::SignalHandlers() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &mask_);
  for (int signal = 1; signal < NSIG; ++signal) (void)::sigaction(signal, nullptr, &before_[static_cast<size_t>(signal)]);
}

SignalHandlers::~SignalHandlers() {
  for (int signal = 1; signal < NSIG; ++signal) {
    const struct sigaction& before = before_[static_cast<size_t>(signal)];
    struct sigaction now{};
    if (::sigaction(signal, nullptr, &now) == 0 && !is_same(now, before)) (void)::sigaction(signal, &before, nullptr);
  }
  pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
}

}  // namespace fccl::core
