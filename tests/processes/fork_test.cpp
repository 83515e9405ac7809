// Ranks that fork: the child may exit, execute, or use FCCL anew, and its parent is not harmed.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "processes/ranks.h"
#include "processes/trial.h"

namespace {
bool leaks_are_not_ours = false;
}

// Asked by the leak sanitizer as a process ends. A child does not have the threads, and so not the stacks, that still hold what
// its parent had allocated.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" [[gnu::visibility("default")]] int __lsan_is_turned_off() { return leaks_are_not_ours ? 1 : 0; }

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

// Runs `body` in a child of this process and returns whether it was content.
bool runs_well_in_a_fork(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Fork, of_a_rank_may_not_use_its_communicator_and_does_not_harm_it) {
  run_ranks({RanksAs::processes, 2}, [](const Seat& seat) {
    const Comm comm(seat);
    EXPECT_TRUE(succeeded(fcclBarrier(comm, nullptr)));
    EXPECT_TRUE(runs_well_in_a_fork([&] {
      const bool refused = fcclBarrier(comm, nullptr) == fcclInvalidUsage;
      const std::string text = fcclGetLastError(nullptr);
      if (text.find("fork") == std::string::npos) return false;
      return refused && fcclCommDestroy(comm) == fcclSuccess;
    }));
    EXPECT_EQ(
        try_collective({.collective = fcclCollAllReduce, .dtype = fcclInt32, .count = 100'000}, seat.rank, seat.ranks, comm),
        "");
  });
}

TEST(Fork, of_a_rank_may_not_end_its_communicator_for_the_parent) {
  run_ranks({.as = RanksAs::processes, .ranks = 2, .limit = 20s}, [](const Seat& seat) {
    const Comm comm(seat);
    EXPECT_TRUE(runs_well_in_a_fork([&] {
      alarm(5);
      fcclResult_t state = fcclSuccess;
      const std::string text = fcclGetLastError(comm);
      return fcclCommFinalize(comm) == fcclInvalidUsage && fcclCommRevoke(comm, 0) == fcclInvalidUsage &&
             fcclCommGetAsyncError(comm, &state) == fcclInvalidUsage && text.find("fork") != std::string::npos &&
             fcclCommAbort(comm) == fcclSuccess;
    }));
    seat.meet();
    EXPECT_TRUE(succeeded(fcclBarrier(comm, nullptr)));
  });
}

TEST(Fork, while_another_thread_is_inside_lets_the_child_free_its_copy) {
  run_ranks({.as = RanksAs::processes, .ranks = 2, .limit = 20s}, [](const Seat& seat) {
    const Comm comm(seat);
    seat.meet();
    // Rank 0 is late.
    std::thread caller([&] {
      if (seat.rank == 0) std::this_thread::sleep_for(500ms);
      EXPECT_TRUE(succeeded(fcclBarrier(comm, nullptr)));
    });
    std::this_thread::sleep_for(100ms);
    for (const bool aborts : {false, true})
      EXPECT_TRUE(runs_well_in_a_fork([&] {
        alarm(5);
        return (aborts ? fcclCommAbort(comm) : fcclCommDestroy(comm)) == fcclSuccess;
      }));
    caller.join();
  });
}

TEST(Fork, of_a_process_that_had_a_communicator_can_make_its_own) {
  run_ranks({RanksAs::processes, 1}, [](const Seat& seat) {
    const Comm comm(seat);
    EXPECT_TRUE(runs_well_in_a_fork([] {
      fcclUniqueId id;
      fcclComm_t own = nullptr;
      if (fcclGetUniqueId(&id) != fcclSuccess || fcclCommInitRank(&own, 1, id, 0) != fcclSuccess) return false;
      return fcclBarrier(own, nullptr) == fcclSuccess && fcclCommDestroy(own) == fcclSuccess;
    }));
  });
}

TEST(Fork, counts_calls_of_its_own_alone) {
  run_ranks({.as = RanksAs::processes, .ranks = 1, .limit = 20s}, [](const Seat& seat) {
    const Comm comm(seat);
    EXPECT_TRUE(succeeded(fcclBarrier(comm, nullptr)));
    EXPECT_TRUE(runs_well_in_a_fork([&] {
      fcclCounter_t counter;
      return fcclCommDestroy(comm) == fcclSuccess && fcclGetProcessCounter(fcclCollBarrier, &counter) == fcclSuccess &&
             counter.calls == 0;
    }));
  });
}

TEST(Fork, of_a_process_that_used_a_stream_can_use_its_own) {
  run_ranks({.as = RanksAs::processes, .ranks = 1, .limit = std::chrono::seconds(20)}, [](const Seat&) {
    fcclStream_t stream;
    ASSERT_TRUE(succeeded(fcclStreamCreate(&stream)));
    EXPECT_TRUE(runs_well_in_a_fork([] {
      // The worker's thread did not come along.
      alarm(5);
      fcclStream_t own;
      bool ran = false;
      const auto note = [](void* data) { *static_cast<bool*>(data) = true; };
      return fcclStreamCreate(&own) == fcclSuccess && fcclLaunchHostFunc(own, note, &ran) == fcclSuccess &&
             fcclStreamDestroy(own) == fcclSuccess && ran;
    }));
    EXPECT_TRUE(succeeded(fcclStreamDestroy(stream)));
  });
}

// It is the thread that was the worker of its parent.
TEST(Fork, inside_a_host_function_can_wait_for_its_own_stream) {
  run_ranks({.as = RanksAs::processes, .ranks = 1, .limit = 20s}, [](const Seat&) {
    fcclStream_t stream;
    ASSERT_TRUE(succeeded(fcclStreamCreate(&stream)));
    bool well = false;
    const auto fork_here = [](void* data) {
      *static_cast<bool*>(data) = runs_well_in_a_fork([] {
        alarm(5);
        fcclStream_t own;
        return fcclStreamCreate(&own) == fcclSuccess && fcclStreamSynchronize(own) == fcclSuccess;
      });
    };
    EXPECT_TRUE(succeeded(fcclLaunchHostFunc(stream, fork_here, &well)));
    EXPECT_TRUE(succeeded(fcclStreamDestroy(stream)));
    EXPECT_TRUE(well);
  });
}

// Runs `body` in children of this rank while another of its threads is inside collectives.
void fork_while_inside(const Seat& seat, const std::function<void()>& body) {
  const Comm comm(seat);
  constexpr int kCalls = 400;
  std::atomic<bool> done{false};
  std::thread caller([&] {
    for (int i = 0; i < kCalls; ++i) {
      const Recipe recipe{
          .collective = fcclCollAllReduce, .dtype = fcclInt32, .count = i % 2 == 0 ? 10u : 50'000u, .iteration = i};
      EXPECT_EQ(try_collective(recipe, seat.rank, seat.ranks, comm), "");
    }
    done = true;
  });
  int children = 0;
  for (; !done || children == 0; ++children)
    EXPECT_TRUE(runs_well_in_a_fork([&] {
      alarm(20);
      leaks_are_not_ours = true;
      body();
      return true;
    }));
  caller.join();
}

TEST(Fork, while_another_thread_is_inside_lets_the_child_exit) {
  run_ranks({RanksAs::processes, 2}, [](const Seat& seat) { fork_while_inside(seat, [] { std::exit(0); }); });
}

TEST(Fork, while_another_thread_is_inside_lets_the_child_execute) {
  run_ranks({RanksAs::processes, 2}, [](const Seat& seat) {
    fork_while_inside(seat, [] {
      execl("/bin/true", "true", nullptr);
      _exit(1);
    });
  });
}

TEST(Fork, of_a_rank_that_dies_does_not_hide_its_death) {
  run_ranks({.as = RanksAs::processes, .ranks = 3, .killed = {1}}, [](const Seat& seat) {
    const Comm comm(seat);
    if (seat.rank == 1) {
      leave_a_child_behind(1500ms);
      seat.board.notes[0] = now_ns();
      kill(getpid(), SIGKILL);
    }
    EXPECT_EQ(fcclBarrier(comm, nullptr), fcclRemoteError);
    EXPECT_TRUE(in_time(seat.board.notes[0], 1000));
    EXPECT_NE(std::string(fcclGetLastError(comm)).find("rank 1 (pid"), std::string::npos) << fcclGetLastError(comm);
  });
}

// Its process lives on as another program, so only the deadline finds it.
TEST(Exec, of_a_rank_is_found_at_the_deadline) {
  run_ranks({RanksAs::processes, 2}, [](const Seat& seat) {
    fcclConfig_t config = config_of_tests();
    config.timeoutMs = 300;
    const Comm comm(seat, config);
    if (seat.rank == 1) {
      execl("/bin/sleep", "sleep", "2", nullptr);
      FAIL() << "no /bin/sleep";
    }
    const int64_t begin = now_ns();
    EXPECT_EQ(fcclBarrier(comm, nullptr), fcclTimeout);
    EXPECT_TRUE(in_time(begin, 1300));
    EXPECT_NE(std::string(fcclGetLastError(comm)).find("rank 1 (pid"), std::string::npos) << fcclGetLastError(comm);
  });
}

}  // namespace
}  // namespace fccl::core::testing
