// Tests of protecting a process's signal handlers.
#include "os/signal_handlers.h"

#include <gtest/gtest.h>

namespace fccl::core {
namespace {

void of_application(int) {}
void with_more_of_application(int, siginfo_t*, void*) {}
void of_library(int) {}

int taken = 0;
void take(int) { ++taken; }

struct sigaction installed(int signal) {
  struct sigaction action{};
  EXPECT_EQ(::sigaction(signal, nullptr, &action), 0);
  return action;
}

TEST(SignalHandlers, are_at_the_end_what_they_were_at_the_beginning) {
  struct sigaction own{};
  own.sa_sigaction = with_more_of_application;
  own.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaddset(&own.sa_mask, SIGHUP);
  ASSERT_EQ(::sigaction(SIGUSR1, &own, nullptr), 0);
  ::signal(SIGUSR2, SIG_IGN);
  {
    const SignalHandlers kept;
    for (const int signal : {SIGUSR1, SIGUSR2, SIGTERM}) ::signal(signal, of_library);
  }
  const struct sigaction after = installed(SIGUSR1);
  EXPECT_EQ(after.sa_sigaction, with_more_of_application);
  EXPECT_NE(after.sa_flags & SA_RESTART, 0);
  EXPECT_EQ(sigismember(&after.sa_mask, SIGHUP), 1);
  EXPECT_EQ(installed(SIGUSR2).sa_handler, SIG_IGN);
  EXPECT_EQ(installed(SIGTERM).sa_handler, SIG_DFL);
}

TEST(SignalHandlers, that_change_afterwards_are_left_alone) {
  {
    const SignalHandlers kept;
  }
  ::signal(SIGUSR1, of_application);
  {
    const SignalHandlers kept;
  }
  EXPECT_EQ(installed(SIGUSR1).sa_handler, of_application);
}

TEST(SignalHandlers, get_what_comes_meanwhile_afterwards) {
  ::signal(SIGUSR1, take);
  {
    const SignalHandlers kept;
    ::signal(SIGUSR1, of_library);
    ::raise(SIGUSR1);
    EXPECT_EQ(taken, 0);
  }
  EXPECT_EQ(taken, 1);
}

}  // namespace
}  // namespace fccl::core
