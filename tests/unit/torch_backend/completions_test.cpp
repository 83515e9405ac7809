// Tests of the threads that tell torch about finished work.
#include "completions.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <system_error>
#include <thread>

#include "processes/no_threads.h"

namespace fccl::torch {
namespace {

using namespace std::chrono_literals;

bool runs_a_task() {
  Completions& completions = Completions::of_process();
  completions.start();
  std::promise<void> done;
  completions.post([&] { done.set_value(); });
  return done.get_future().wait_for(5s) == std::future_status::ready;
}

TEST(Completions, of_a_fork_are_its_own) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer lets a fork start no threads";
#endif
  ASSERT_TRUE(runs_a_task());
  // The thread waits for the next one.
  std::this_thread::sleep_for(50ms);
  const pid_t child = fork();
  if (child == 0) _exit(runs_a_task() ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(Completions, that_can_have_no_thread_say_so_when_they_are_started) {
  const core::testing::NoThreads here;
  EXPECT_THROW(Completions().start(), std::system_error);
}

TEST(Completions, at_the_limit_of_threads_let_a_task_wait_for_another_one) {
  auto& completions = *new Completions;
  completions.start();
  std::promise<void> begun, may_end, done;
  completions.post([&] {
    begun.set_value();
    may_end.get_future().wait();
  });
  begun.get_future().wait();
  {
    const core::testing::NoThreads here;
    completions.post([&] { done.set_value(); });
  }
  may_end.set_value();
  EXPECT_EQ(done.get_future().wait_for(5s), std::future_status::ready);
}

}  // namespace
}  // namespace fccl::torch
