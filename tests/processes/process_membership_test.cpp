// Tests that only separate processes can make: hosts and settings that differ.
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "processes/ranks.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

// Every rank sets the variable to its own value and joins.
void expect_init_fails(const Seat& seat, const char* variable, const std::string& value, fcclResult_t code,
                       const std::vector<std::string>& reasons) {
  const Setting setting(variable, value);
  const fcclUniqueId id = agree_on_id(seat);
  fcclConfig_t config = config_of_tests();
  fcclComm_t comm = nullptr;
  EXPECT_EQ(fcclCommInitRankConfig(&comm, seat.ranks, id, seat.rank, &config), code);
  EXPECT_EQ(comm, nullptr);
  // The process of rank 0 serves the id, also to those who come late.
  seat.meet();
  const std::string text = fcclGetLastError(nullptr);
  for (const std::string& reason : reasons) EXPECT_NE(text.find(reason), std::string::npos) << text;
}

TEST(Init, of_ranks_with_different_settings_is_refused_and_shows_both) {
  run_ranks({RanksAs::processes, 3}, [](const Seat& seat) {
    expect_init_fails(seat, "FCCL_SLOT_BYTES", seat.rank == 2 ? "4096" : "8192", fcclInvalidUsage,
                      {"rank 2", "FCCL_SLOT_BYTES=4096", "FCCL_SLOT_BYTES=8192"});
  });
}

TEST(Init, of_a_rank_with_a_setting_that_cannot_be_fails_at_once_and_names_it) {
  run_ranks({RanksAs::processes, 3}, [](const Seat& seat) {
    const int64_t begin = now_ns();
    const bool fails = seat.rank == 1;
    expect_init_fails(seat, "FCCL_SLOT_BYTES", fails ? "7" : "8192", fcclInvalidUsage,
                      {"FCCL_SLOT_BYTES", fails ? "7" : "rank 1 (pid"});
    EXPECT_TRUE(in_time(begin, 3000));
  });
}

TEST(Init, of_a_rank_with_a_config_that_cannot_be_fails_at_once_and_names_it) {
  run_ranks({RanksAs::processes, 3}, [](const Seat& seat) {
    const fcclUniqueId id = agree_on_id(seat);
    const bool fails = seat.rank == 2;
    fcclConfig_t config = config_of_tests();
    if (fails) config.timeoutMs = -5;
    fcclComm_t comm = nullptr;
    const int64_t begin = now_ns();
    EXPECT_EQ(fcclCommInitRankConfig(&comm, seat.ranks, id, seat.rank, &config), fcclInvalidArgument);
    EXPECT_TRUE(in_time(begin, 3000));
    const std::string text = fcclGetLastError(nullptr);
    EXPECT_NE(text.find("timeoutMs is -5"), std::string::npos) << text;
    if (!fails) {
      EXPECT_NE(text.find("rank 2 (pid"), std::string::npos) << text;
    }
    seat.meet();
  });
}

TEST(Init, names_who_never_came_on_every_rank_though_the_root_ends_at_its_deadline) {
  Launch launch{RanksAs::processes, 4};
  launch.killed = {0};
  run_ranks(launch, [](const Seat& seat) {
    const fcclUniqueId id = agree_on_id(seat);
    std::atomic<int64_t>& out = seat.board.notes[0];
    const bool comes = seat.rank != 3;
    while (!comes && out < 2) std::this_thread::sleep_for(1ms);
    if (!comes) return;
    fcclConfig_t config = config_of_tests();
    config.initTimeoutMs = (seat.rank == 0 ? 1000 : 10'000) * kSlowdown;
    fcclComm_t comm = nullptr;
    EXPECT_EQ(fcclCommInitRankConfig(&comm, seat.ranks, id, seat.rank, &config), fcclTimeout);
    if (seat.rank == 0) kill(getpid(), SIGKILL);
    const std::string text = fcclGetLastError(nullptr);
    EXPECT_NE(text.find("missing: rank 3"), std::string::npos) << text;
    ++out;
  });
}

TEST(Init, whose_root_is_stopped_says_so) {
  run_ranks({RanksAs::processes, 3}, [](const Seat& seat) {
    const fcclUniqueId id = agree_on_id(seat);
    std::atomic<int64_t>& root = seat.board.notes[0];
    if (seat.rank == 0) root = getpid();
    seat.meet();
    if (seat.rank == 1) {
      std::thread stop([&] {
        std::this_thread::sleep_for(500ms * kSlowdown);
        kill(static_cast<pid_t>(root), SIGSTOP);
      });
      fcclConfig_t config = config_of_tests();
      config.initTimeoutMs = 1000 * kSlowdown;
      fcclComm_t comm = nullptr;
      EXPECT_EQ(fcclCommInitRankConfig(&comm, seat.ranks, id, seat.rank, &config), fcclTimeout);
      EXPECT_NE(std::string(fcclGetLastError(nullptr)).find("does not answer any more"), std::string::npos)
          << fcclGetLastError(nullptr);
      kill(static_cast<pid_t>(root), SIGCONT);
      stop.join();
    }
    seat.meet();
  });
}

TEST(Init, without_descriptors_for_a_socket_fails_at_once) {
  if (kSlowdown > 1) GTEST_SKIP() << "a sanitizer needs descriptors of its own to check an object's type";
  run_ranks({RanksAs::processes, 1}, [](const Seat& seat) {
    fcclUniqueId id = agree_on_id(seat);
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const int next = dup(STDIN_FILENO);
    // For what a rank listens at.
    const rlimit few{static_cast<rlim_t>(next + 2), limit.rlim_max};
    close(next);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    fcclConfig_t config = config_of_tests();
    fcclComm_t comm = nullptr;
    const int64_t begin = now_ns();
    EXPECT_EQ(fcclCommInitRankConfig(&comm, seat.ranks, id, seat.rank, &config), fcclSystemError);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_TRUE(in_time(begin, 3000));
    EXPECT_NE(std::string(fcclGetLastError(nullptr)).find("ulimit -n"), std::string::npos) << fcclGetLastError(nullptr);
  });
}

TEST(Init, where_files_may_not_be_as_long_as_its_memory_says_which_limit_it_is) {
  run_ranks({RanksAs::processes, 2}, [](const Seat& seat) {
    const fcclUniqueId id = agree_on_id(seat);
    const rlimit short_files{1 << 20, 1 << 20};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &short_files), 0);
    fcclConfig_t config = config_of_tests();
    fcclComm_t comm = nullptr;
    EXPECT_EQ(fcclCommInitRankConfig(&comm, seat.ranks, id, seat.rank, &config), fcclSystemError);
    EXPECT_NE(std::string(fcclGetLastError(nullptr)).find("ulimit -f"), std::string::npos) << fcclGetLastError(nullptr);
  });
}

TEST(Init, of_ranks_that_agree_on_a_host_of_another_name_works) {
  const Setting setting("FCCL_HOST_ID", "orchard");
  run_ranks({RanksAs::processes, 2}, [](const Seat& seat) {
    const Comm comm(seat);
    EXPECT_TRUE(succeeded(fcclBarrier(comm, nullptr)));
  });
}

}  // namespace
}  // namespace fccl::core::testing
