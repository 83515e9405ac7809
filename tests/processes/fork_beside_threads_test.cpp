// Forks by one thread while others, of the library or of the application, are anywhere inside the library: the child meets no
// lock and no half-made object of theirs.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "processes/ranks.h"

namespace fccl::core::testing {
namespace {

constexpr int kPatience = 10 * kSlowdown;
constexpr const char* kWithoutSanitizers = "a fork may find the allocator of a sanitizer locked by the other threads";

bool use_the_library() {
  fcclUniqueId id;
  fcclComm_t comm = nullptr;
  if (fcclGetUniqueId(&id) != fcclSuccess || fcclCommInitRank(&comm, 1, id, 0) != fcclSuccess) return false;
  fcclCounter_t counter;
  // The library logs the refused call.
  return fcclBarrier(comm, nullptr) == fcclSuccess && fcclBarrier(nullptr, nullptr) == fcclInvalidArgument &&
         fcclCommDestroy(comm) == fcclSuccess && fcclGetProcessCounter(fcclCollBarrier, &counter) == fcclSuccess;
}

pid_t fork_to_use_the_library() {
  const pid_t child = fork();
  if (child != 0) return child;
  alarm(kPatience);
  _exit(use_the_library() ? 0 : 1);
}

bool ended_well(pid_t child) {
  int status = -1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void silence() {
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(nowhere, STDERR_FILENO);
  close(nowhere);
}

// Repeats `work` while it lives.
class Busy {
 public:
  explicit Busy(std::function<void()> work)
      : thread_([this, work = std::move(work)] {
          while (!over_) work();
        }) {}
  ~Busy() {
    over_ = true;
    thread_.join();
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

// Forks many times in a process of its own, one after the other, beside threads that repeat `work`.
void fork_beside(const std::function<void()>& work) {
  if (kSlowdown > 1) GTEST_SKIP() << kWithoutSanitizers;
  const Setting log("FCCL_LOG", "debug");
  run_ranks({.as = RanksAs::processes, .ranks = 1}, [&](const Seat&) {
    silence();
    ASSERT_TRUE(use_the_library());
    const Busy first(work), second(work);
    int bad = 0;
    for (int i = 0; i < 150 && bad == 0; ++i) bad += ended_well(fork_to_use_the_library()) ? 0 : 1;
    EXPECT_EQ(bad, 0) << "children hung or failed";
  });
}

TEST(ForkBesideThreads, that_log_leaves_the_child_its_log) {
  fork_beside([] { (void)fcclBarrier(nullptr, nullptr); });
}

TEST(ForkBesideThreads, that_read_counters_leaves_the_child_its_counters) {
  fork_beside([] {
    fcclCounter_t counter;
    (void)fcclGetProcessCounter(fcclCollBarrier, &counter);
  });
}

TEST(ForkBesideThreads, that_make_communicators_leaves_the_child_free_to_make_its_own) {
  fork_beside([] { (void)use_the_library(); });
}

// The thread behind the first unique id of a process is at work for the first time.
TEST(ForkBesideThreads, behind_a_unique_id_leaves_the_child_free_to_join) {
  if (kSlowdown > 1) GTEST_SKIP() << kWithoutSanitizers;
  constexpr int kRanks = 12;
  for (int round = 0; round < 40; ++round)
    run_ranks({.as = RanksAs::processes, .ranks = 1, .limit = std::chrono::seconds(3 * kPatience)}, [](const Seat&) {
      fcclUniqueId id;
      ASSERT_TRUE(succeeded(fcclGetUniqueId(&id)));
      const auto join_as = [&](int rank) {
        fcclConfig_t config = config_of_tests();
        fcclComm_t comm = nullptr;
        return fcclCommInitRankConfig(&comm, kRanks, id, rank, &config) == fcclSuccess && fcclCommDestroy(comm) == fcclSuccess;
      };
      std::vector<pid_t> children;
      for (int rank = 1; rank < kRanks; ++rank) {
        children.push_back(fork());
        if (children.back() != 0) continue;
        alarm(kPatience);
        _exit(join_as(rank) ? 0 : 1);
      }
      alarm(2 * kPatience);
      EXPECT_TRUE(join_as(0)) << fcclGetLastError(nullptr);
      for (const pid_t child : children) EXPECT_TRUE(ended_well(child));
    });
}

}  // namespace
}  // namespace fccl::core::testing
