// Tests of the watch over a process.
#include "os/process_watch.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "os/clock.h"

namespace fccl::core {
namespace {

using namespace std::chrono_literals;

// A child that sleeps until it is killed.
class Sleeper {
 public:
  Sleeper() : pid_(::fork()) {
    if (pid_ == 0)
      while (true) ::pause();
  }
  ~Sleeper() { kill(); }
  int pid() const { return pid_; }
  void kill() {
    if (std::exchange(killed_, true)) return;
    ::kill(pid_, SIGKILL);
  }
  void wait() const { ::waitpid(pid_, nullptr, 0); }

 private:
  int pid_;
  bool killed_ = false;
};

bool dies_within(const ProcessWatch& watch, std::chrono::milliseconds span) {
  for (const Deadline deadline = Deadline::after(span); watch.alive(); std::this_thread::sleep_for(1ms))
    if (deadline.passed()) return false;
  return true;
}

ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

TEST(ProcessWatch, this_process_is_alive_and_costs_no_descriptor) {
  const auto before = open_descriptors();
  const auto watch = *ProcessWatch::of(::getpid());
  EXPECT_TRUE(watch->alive());
  EXPECT_EQ(open_descriptors(), before);
}

TEST(ProcessWatch, sees_a_kill_before_the_parent_has_waited) {
  Sleeper sleeper;
  const auto watch = *ProcessWatch::of(sleeper.pid());
  EXPECT_TRUE(watch->alive());
  sleeper.kill();
  EXPECT_TRUE(dies_within(*watch, 1s));
  sleeper.wait();
  EXPECT_FALSE(watch->alive());
}

TEST(ProcessWatch, a_process_that_has_ended_cannot_be_watched) {
  Sleeper sleeper;
  sleeper.kill();
  sleeper.wait();
  const auto watch = ProcessWatch::of(sleeper.pid());
  ASSERT_FALSE(watch);
  EXPECT_EQ(watch.error().code, fcclRemoteError);
}

TEST(ProcessWatch, watches_of_one_process_share_a_descriptor_that_goes_with_the_last) {
  Sleeper sleeper;
  const auto before = open_descriptors();
  {
    const auto first = *ProcessWatch::of(sleeper.pid());
    const auto second = *ProcessWatch::of(sleeper.pid());
    EXPECT_EQ(first, second);
    EXPECT_EQ(open_descriptors(), before + 1);
  }
  EXPECT_EQ(open_descriptors(), before);
  sleeper.kill();
  sleeper.wait();
}

TEST(ProcessWatch, gives_a_descriptor_that_becomes_readable_at_the_end_and_none_for_this_process) {
  Sleeper child;
  const auto watch = *ProcessWatch::of(child.pid());
  pollfd ended{watch->descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 0), 0);
  child.kill();
  EXPECT_EQ(::poll(&ended, 1, 10000), 1);
  child.wait();
  EXPECT_EQ((*ProcessWatch::of(::getpid()))->descriptor(), -1);
}

}  // namespace
}  // namespace fccl::core
