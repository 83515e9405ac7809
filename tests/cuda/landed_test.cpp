// AllGather and Broadcast by landing slots of both kinds: which ranks and buffers go that way, and what becomes of those that
// do not. Also which memory of a bounced call peers read.
#include <chrono>
#include <csignal>
#include <cstring>
#include <numeric>
#include <thread>

#include "cuda/landed_calls.h"
#include "processes/hosts.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

// By slots in host memory, and in that of GPUs.
class CudaLanded : public ::testing::TestWithParam<const char*> {
 protected:
  const Setting path{"FCCL_CUDA_PATH", GetParam()};
  const Setting slots{"FCCL_CUDA_LANDING", kSmallSlots};
};

// In the first of all calls the ranks map each other's arenas.
void expect_read_in_place(CudaSeat& seat) {
  constexpr size_t kCount = 30'000;
  constexpr int kRounds = 3;
  const Comm comm(seat.seat(), config_of_cuda_tests());
  const fcclColl_t collectives[] = {fcclCollReduceScatter, fcclCollAllReduce, fcclCollAlltoAll};
  for (const fcclColl_t collective : collectives)
    for (int i = 0; i < kRounds; ++i)
      EXPECT_EQ(try_on_gpu({.collective = collective, .dtype = fcclFloat32, .count = kCount, .iteration = i}, seat, comm), "");
  EXPECT_TRUE(succeeded(fcclCommFinalize(comm)));
  for (const fcclColl_t collective : collectives)
    EXPECT_GE(calls_by("mapped", comm, collective) + calls_by("whole", comm, collective), kRounds - 1U) << collective;
}

TEST(CudaBounce, buffers_are_read_in_place_by_threads) {
  const Setting path("FCCL_CUDA_PATH", "bounce");
  run_on_gpus({.ranks = 3}, expect_read_in_place);
}

TEST(CudaBounce, buffers_are_read_in_place_by_processes) {
  if (!sees_processes()) GTEST_SKIP() << "the thread sanitizer sees one process";
  const Setting path("FCCL_CUDA_PATH", "bounce");
  run_on_gpus({.ranks = 3, .host_of = {0, 0, 0}}, expect_read_in_place);
}

TEST_P(CudaLanded, calls_of_threads_go_by_slots) {
  for (const int ranks : {2, 5})
    run_on_gpus({.ranks = ranks, .gpus = ranks % 2 + 1}, [](CudaSeat& seat) { expect_landed(seat, GetParam()); });
}

TEST_P(CudaLanded, calls_of_processes_go_by_slots_that_peers_may_only_read) {
  if (!sees_processes()) GTEST_SKIP() << "the thread sanitizer sees one process";
  run_on_gpus({.ranks = 3, .host_of = {0, 0, 0}}, [](CudaSeat& seat) { expect_landed(seat, GetParam()); });
}

TEST_P(CudaLanded, slots_are_used_again_by_the_next_communicator) {
  run_on_gpus({.ranks = 3, .gpus = 3}, [](CudaSeat& seat) {
    for (int round = 0; round < 4; ++round) {
      expect_landed(seat, GetParam());
      seat.meet();
    }
  });
}

// One rank's buffers are pinned host memory: its thread copies, and the others go on as they would.
TEST_P(CudaLanded, buffers_in_pinned_memory_are_copied_by_their_thread) {
  const Setting buffer("FCCL_CUDA_BUFFER", "4096");
  run_on_gpus({.ranks = 3, .gpus = 3, .options = {.delay_us = 200}}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    constexpr size_t kCount = 20'000;
    using enum MemoryPlace;
    for (int round = 0; round < 12; ++round) {
      const bool is_pinned = round % 3 == seat.rank();
      std::byte* const from = seat.gpu().allocate(is_pinned && round % 4 != 1 ? pinned_host : this_device, kCount * 4);
      std::byte* const to = seat.gpu().allocate(is_pinned && round % 4 != 2 ? pinned_host : this_device, kCount * 4 * 3);
      std::vector<int32_t> sent(kCount), found(3 * kCount), expected(3 * kCount);
      std::iota(sent.begin(), sent.end(), 100'000 * seat.rank() + round);
      for (int rank = 0; rank < 3; ++rank)
        std::iota(expected.begin() + rank * kCount, expected.begin() + (rank + 1) * kCount, 100'000 * rank + round);
      seat.gpu().launch(seat.stream(), [=, &sent] {
        std::this_thread::sleep_for(1ms);
        simulated::store(from, std::as_bytes(std::span(sent)));
      });
      EXPECT_TRUE(succeeded(fcclAllGather(from, to, kCount, fcclInt32, comm, seat.stream().native)));
      seat.gpu().synchronize(seat.stream());
      seat.gpu().read(to, std::as_writable_bytes(std::span(found)));
      EXPECT_EQ(found, expected) << "round " << round;
    }
    EXPECT_TRUE(succeeded(fcclCommFinalize(comm)));
    EXPECT_EQ(calls_by(name_in_metrics(GetParam()), comm, fcclCollAllGather), 12U);
    seat.meet();
  });
}

TEST_P(CudaLanded, calls_that_differ_show_both) {
  run_on_gpus({.ranks = 2, .gpus = 2}, [](CudaSeat& seat) {
    Comm comm(seat.seat(), config_of_cuda_tests());
    EXPECT_EQ(try_on_gpu({.collective = fcclCollAllGather, .dtype = fcclInt32, .count = 100}, seat, comm), "");
    constexpr size_t kCount = 10'000;
    std::byte* const from = seat.take(kCount * 4);
    std::byte* const to = seat.take(kCount * 8);
    seat.meet();
    (void)fcclAllGather(from, to, kCount - static_cast<size_t>(seat.rank()), fcclInt32, comm, seat.stream().native);
    EXPECT_NE(fcclCommFinalize(comm), fcclSuccess);
    expect_words(fcclGetLastError(comm), {"AllGather of 10000 int32", "AllGather of 9999 int32"});
    fcclCommDestroy(comm.release());
    seat.gpu().synchronize(seat.stream());
    seat.meet();
  });
}

TEST_P(CudaLanded, calls_release_their_streams_when_a_rank_is_killed) {
  if (!sees_processes()) GTEST_SKIP() << "the thread sanitizer sees one process";
  for (const int steps : {0, 1, 7})
    run_on_gpus({.ranks = 3, .host_of = {0, 0, 0}, .killed = {2}}, [steps](CudaSeat& seat) {
      Comm comm(seat.seat(), config_of_cuda_tests());
      EXPECT_EQ(try_on_gpu({.collective = fcclCollAllGather, .dtype = fcclInt32, .count = 100}, seat, comm), "");
      seat.meet();
      if (seat.rank() == 2) {
        CudaTrial trial({.collective = fcclCollAllGather, .dtype = fcclFloat32, .count = 100'000}, seat);
        if (steps > 0) (void)trial.issue(comm);
        std::this_thread::sleep_for(std::chrono::milliseconds(steps));
        raise(SIGKILL);
      }
      CudaTrial trial({.collective = fcclCollAllGather, .dtype = fcclFloat32, .count = 100'000}, seat);
      (void)trial.issue(comm);
      CudaTrial next({.collective = fcclCollBroadcast, .dtype = fcclFloat32, .count = 100'000, .root = 2}, seat);
      (void)next.issue(comm);
      EXPECT_EQ(await_failure(comm, now_ns(), 3 * kSecond), fcclRemoteError);
      const std::string text = fcclGetLastError(comm);
      EXPECT_NE(text.find("rank 2 (pid"), std::string::npos) << text;
      seat.gpu().synchronize(seat.stream());
    });
}

INSTANTIATE_TEST_SUITE_P(By, CudaLanded, ::testing::Values("host", "peer"), [](const auto& info) { return info.param; });

TEST(CudaHostSlots, are_not_used_where_those_of_peers_cannot_be_pinned) {
  if (!sees_processes()) GTEST_SKIP() << "the thread sanitizer sees one process";
  const Setting path("FCCL_CUDA_PATH", "host"), slots("FCCL_CUDA_LANDING", kSmallSlots);
  run_on_gpus({.ranks = 3, .options = {.pins_read_only = false}, .host_of = {0, 0, 0}},
              [](CudaSeat& seat) { expect_landed(seat, "bounce"); });
}

TEST(CudaSlots, are_not_used_where_the_gpu_of_one_rank_waits_for_no_words) {
  const Setting slots("FCCL_CUDA_LANDING", kSmallSlots);
  simulated::uninstall_all();
  std::vector<std::shared_ptr<simulated::SimulatedGpu>> gpus;
  for (int ordinal = 0; ordinal < 2; ++ordinal) {
    gpus.push_back(
        std::make_shared<simulated::SimulatedGpu>(simulated::GpuOptions{.ordinal = ordinal, .waits_for_words = ordinal == 0}));
    simulated::install(gpus.back());
  }
  run_ranks({.as = RanksAs::threads, .ranks = 2}, [&](const Seat& seat) {
    simulated::set_current_device(seat.rank);
    CudaSeat own(seat, gpus[static_cast<size_t>(seat.rank)]);
    expect_landed(own, "bounce");
  });
  simulated::uninstall_all();
}

}  // namespace
}  // namespace fccl::core::testing
