// Collectives in CUDA memory between hosts: ranks as processes, each with a GPU of its own.
#include "processes/hosts.h"

#include <csignal>
#include <thread>

#include "cuda/cuda_ranks.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

struct ByPath {
  const char* path;
  OnHosts hosts;

  std::string name() const { return std::string(path) + "_" + hosts.name; }
};

// Else the names of tests would hold addresses.
void PrintTo(const ByPath& by_path, std::ostream* out) { *out << by_path.name(); }

class CudaHosts : public ::testing::TestWithParam<ByPath> {
 protected:
  OnGpus on(std::vector<int> killed = {}) const {
    return {.ranks = GetParam().hosts.ranks(), .host_of = GetParam().hosts.host_of, .killed = std::move(killed)};
  }
  const Setting path{"FCCL_CUDA_PATH", GetParam().path};
  const Setting buffer{"FCCL_CUDA_BUFFER", "16384"};
};

std::string fault_of(const Recipe& recipe, CudaSeat& seat, fcclComm_t comm, const Placement& placement) {
  seat.reset();
  CudaTrial trial(recipe, seat, false, placement);
  const fcclResult_t result = trial.issue(comm);
  seat.gpu().synchronize(seat.stream());
  if (result != fcclSuccess) return describe(recipe) + ": " + fcclGetLastError(comm);
  return trial.fault();
}

TEST_P(CudaHosts, have_the_values_of_cpu_memory) {
  const Placement placement{GetParam().hosts.host_of};
  run_on_gpus(on(), [&](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    int iteration = 0;
    for (int collective = 0; collective < fcclCollSend; ++collective)
      for (const fcclDataType_t dtype : {fcclFloat32, fcclBfloat16})
        for (const size_t count : {0, 1, 1001, 20'001}) {
          Recipe recipe{.collective = static_cast<fcclColl_t>(collective), .dtype = dtype, .count = count};
          if (collective == fcclCollBarrier) recipe.count = 0;
          recipe.iteration = ++iteration;
          recipe.root = iteration % seat.ranks();
          recipe.in_place = iteration % 2 == 0 && !exchanges(recipe.collective);
          EXPECT_EQ(fault_of(recipe, seat, comm, placement), "");
        }
  });
}

TEST_P(CudaHosts, tell_every_rank_of_calls_that_differ_and_release_their_streams) {
  run_on_gpus(on(), [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    CudaTrial before({.collective = fcclCollAllReduce, .dtype = fcclFloat32, .count = 10}, seat);
    EXPECT_TRUE(succeeded(before.issue(comm)));
    seat.gpu().synchronize(seat.stream());
    seat.meet();
    const int64_t begin = now_ns();
    CudaTrial trial({.collective = fcclCollAllReduce, .dtype = fcclFloat32, .count = seat.rank() == 0 ? 40'000U : 41'000U},
                    seat);
    (void)trial.issue(comm);
    EXPECT_EQ(await_failure(comm, begin, kSecond), fcclInvalidUsage);
    const std::string text = fcclGetLastError(comm);
    EXPECT_NE(text.find("of 40000 float32"), std::string::npos) << text;
    EXPECT_NE(text.find("of 41000 float32"), std::string::npos) << text;
    seat.gpu().synchronize(seat.stream());
    EXPECT_TRUE(in_time(begin, 2000));
    seat.meet();
  });
}

TEST_P(CudaHosts, release_their_streams_when_a_rank_of_another_host_is_killed) {
  const int victim = GetParam().hosts.ranks() - 1;
  run_on_gpus(on({victim}), [&](CudaSeat& seat) {
    Comm comm(seat.seat(), config_of_cuda_tests());
    CudaTrial before({.collective = fcclCollAllReduce, .dtype = fcclFloat32, .count = 10}, seat);
    EXPECT_TRUE(succeeded(before.issue(comm)));
    seat.gpu().synchronize(seat.stream());
    seat.meet();
    if (seat.rank() == victim) {
      std::this_thread::sleep_for(50ms);
      raise(SIGKILL);
    }
    CudaTrial trial({.collective = fcclCollAllReduce, .dtype = fcclFloat32, .count = 20'000}, seat);
    (void)trial.issue(comm);
    EXPECT_EQ(await_failure(comm, now_ns(), 3 * kSecond), fcclRemoteError);
    const std::string text = fcclGetLastError(comm);
    EXPECT_NE(text.find("rank " + std::to_string(victim) + " (pid"), std::string::npos) << text;
    seat.gpu().synchronize(seat.stream());
  });
}

TEST_P(CudaHosts, send_receive_and_group_as_on_cpu_memory) {
  run_on_gpus(on(), [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    void* const stream = seat.stream().native;
    const int next = (seat.rank() + 1) % seat.ranks(), last = (seat.rank() + seat.ranks() - 1) % seat.ranks();
    for (const size_t count : {0, 1, 30'001}) {
      seat.reset();
      std::vector<int32_t> mine(count, 10 + seat.rank()), theirs(count);
      std::byte *const from = seat.take(count * sizeof(int32_t) + 1), *const to = seat.take(count * sizeof(int32_t) + 1);
      seat.gpu().write(from, std::as_bytes(std::span(mine)));
      EXPECT_TRUE(succeeded(fcclGroupStart()));
      EXPECT_TRUE(succeeded(fcclSend(from, count, fcclInt32, next, comm, stream)));
      EXPECT_TRUE(succeeded(fcclRecv(to, count, fcclInt32, last, comm, stream)));
      EXPECT_TRUE(succeeded(fcclGroupEnd()));
      seat.gpu().synchronize(seat.stream());
      seat.gpu().read(to, std::as_writable_bytes(std::span(theirs)));
      EXPECT_EQ(theirs, std::vector<int32_t>(count, 10 + last));
    }
    seat.meet();
  });
}

TEST_P(CudaHosts, end_a_receive_from_a_rank_that_is_killed) {
  const int victim = GetParam().hosts.ranks() - 1;
  run_on_gpus(on({victim}), [&](CudaSeat& seat) {
    Comm comm(seat.seat(), config_of_cuda_tests());
    seat.meet();
    if (seat.rank() == victim) {
      std::this_thread::sleep_for(50ms);
      raise(SIGKILL);
    }
    const int64_t begin = now_ns();
    EXPECT_EQ(fcclRecv(seat.take(400), 100, fcclInt32, victim, comm, seat.stream().native), fcclRemoteError);
    const std::string text = fcclGetLastError(comm);
    EXPECT_NE(text.find("rank " + std::to_string(victim) + " (pid"), std::string::npos) << text;
    seat.gpu().synchronize(seat.stream());
    EXPECT_TRUE(in_time(begin, 3000));
  });
}

// The last rank is in the call, and waits for the first one, when it is killed.
void kill_in(fcclColl_t collective, const OnGpus& on) {
  const int victim = on.killed.front();
  run_on_gpus(on, [&](CudaSeat& seat) {
    Comm comm(seat.seat(), config_of_cuda_tests());
    CudaTrial trial({.collective = collective, .dtype = fcclFloat32, .count = 20'001}, seat);
    seat.meet();
    const int64_t begin = now_ns();
    std::jthread end;
    if (seat.rank() == victim)
      end = std::jthread([] {
        std::this_thread::sleep_for(100ms);
        raise(SIGKILL);
      });
    if (seat.rank() == 0) std::this_thread::sleep_for(300ms);
    // The call ends well if the victim has given its part before.
    const fcclResult_t result = trial.issue(comm);
    seat.gpu().synchronize(seat.stream());
    EXPECT_TRUE(in_time(begin, 3000));
    if (result == fcclSuccess) {
      EXPECT_EQ(trial.fault(), "");
    }
    EXPECT_EQ(await_failure(comm, now_ns(), 3 * kSecond), fcclRemoteError);
    const std::string text = fcclGetLastError(comm);
    EXPECT_NE(text.find("rank " + std::to_string(victim) + " (pid"), std::string::npos) << text;
  });
}

TEST_P(CudaHosts, end_a_gather_of_uneven_blocks_in_which_a_rank_is_killed) {
  kill_in(fcclCollAllGatherV, on({GetParam().hosts.ranks() - 1}));
}

TEST_P(CudaHosts, end_an_exchange_of_uneven_blocks_in_which_a_rank_is_killed) {
  kill_in(fcclCollAlltoAllV, on({GetParam().hosts.ranks() - 1}));
}

INSTANTIATE_TEST_SUITE_P(On, CudaHosts,
                         ::testing::Values(ByPath{"blocking", kTwoAndTwo}, ByPath{"bounce", kTwoAndTwo},
                                           ByPath{"bounce", kOneAndTwoAndOne}),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace fccl::core::testing
