// Tests of objects that exist once per process.
#include "os/per_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <set>
#include <thread>
#include <vector>

namespace fccl::core {
namespace {

bool runs_well_in_a_fork(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(5);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

struct Count {
  std::atomic<int> value{0};
};

TEST(PerProcess, is_one_for_all_threads) {
  static constinit PerProcess<Count> count;
  std::vector<Count*> seen(8);
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (Count*& place : seen)
    threads.emplace_back([&] {
      ++ready;
      while (ready < 8) std::this_thread::yield();
      place = &count.get();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<Count*>(seen.begin(), seen.end()).size(), 1u);
}

TEST(PerProcess, is_made_anew_in_a_fork_and_stays_as_it_was_in_the_parent) {
  static constinit PerProcess<Count> count;
  count.get().value = 7;
  EXPECT_TRUE(runs_well_in_a_fork([&] {
    Count& own = count.get();
    return own.value == 0 && &own == &count.get();
  }));
  EXPECT_EQ(count.get().value, 7);
}

// A type whose first construction takes long.
struct Slow {
  static inline std::atomic<int> begun{0};
  static inline std::atomic<bool> may_end{false};
  Slow() {
    if (begun++ == 0) may_end.wait(false);
  }
};

TEST(PerProcess, can_be_had_by_a_fork_while_another_thread_of_the_parent_is_making_it) {
  static constinit PerProcess<Slow> slow;
  std::thread maker([] { (void)slow.get(); });
  while (Slow::begun == 0) std::this_thread::yield();
  EXPECT_TRUE(runs_well_in_a_fork([] { return &slow.get() == &slow.get(); }));
  Slow::may_end = true;
  Slow::may_end.notify_all();
  maker.join();
}

}  // namespace
}  // namespace fccl::core
