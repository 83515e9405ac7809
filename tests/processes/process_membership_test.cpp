// What only separate processes can show: hosts and settings that differ, and fork.
#include <sys/wait.h>
#include <unistd.h>

#include "processes/ranks.h"
#include "processes/trial.h"

namespace fccl::testing {
namespace {

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

TEST(Init, of_ranks_on_two_hosts_is_refused_on_both_by_name) {
  run_ranks({RanksAs::processes, 2}, [](const Seat& seat) {
    expect_init_fails(seat, "FCCL_HOST_ID", seat.rank == 0 ? "apple" : "pear", fcclNotImplemented,
                      {"rank 0", "rank 1", "apple", "pear", "more than one host"});
  });
}

TEST(Init, of_ranks_with_different_settings_is_refused_and_shows_both) {
  run_ranks({RanksAs::processes, 3}, [](const Seat& seat) {
    expect_init_fails(seat, "FCCL_SLOT_BYTES", seat.rank == 2 ? "4096" : "8192", fcclInvalidUsage,
                      {"rank 2", "FCCL_SLOT_BYTES=4096", "FCCL_SLOT_BYTES=8192"});
  });
}

TEST(Init, of_ranks_that_agree_on_a_host_of_another_name_works) {
  const Setting setting("FCCL_HOST_ID", "orchard");
  run_ranks({RanksAs::processes, 2}, [](const Seat& seat) {
    const Comm comm(seat);
    EXPECT_TRUE(succeeded(fcclBarrier(comm, nullptr)));
  });
}

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

}  // namespace
}  // namespace fccl::testing
