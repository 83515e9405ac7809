// ReduceScatter and AllReduce by pair slots in the memory of GPUs and a kernel: which calls go that way, their bits, and what
// becomes of those that do not.
#include <atomic>
#include <chrono>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

#include "base/collective.h"
#include "cuda/landed_calls.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

struct Sum {
  fcclDataType_t dtype;
  ReduceOp op;
  bool widens = false;
};

constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::avg, ReduceOp::premul_sum};
constexpr Sum kWithoutKernel[] = {{fcclInt32, ReduceOp::sum},      {fcclFloat64, ReduceOp::avg},
                                  {fcclFloat32, ReduceOp::max},    {fcclBfloat16, ReduceOp::prod},
                                  {fcclFloat8e4m3, ReduceOp::sum}, {fcclFloat8e5m2, ReduceOp::avg, true}};

std::vector<Sum> with_kernel() {
  std::vector<Sum> all;
  for (const ReduceOp op : kOps) {
    all.push_back({fcclFloat32, op});
    for (const fcclDataType_t dtype : {fcclFloat16, fcclBfloat16})
      for (const bool widens : {false, true}) all.push_back({dtype, op, widens});
  }
  return all;
}

// The body of a test runs on many threads, but tests run one after the other.
class CudaSums : public ::testing::TestWithParam<fcclColl_t> {
 protected:
  // Steps of 256 float32, of a rank's block or share: one, several, more than there are slots, and part of one. Among more than
  // three ranks the first AllReduce leaves some without a share.
  static std::vector<size_t> counts(int ranks) {
    const auto all = static_cast<size_t>(ranks);
    if (GetParam() == fcclCollReduceScatter) return {200, 256, 1025, 2817};
    return {130, 256 * all - 1, 1281 * all};
  }
  static uint64_t calls_by_peer(fcclComm_t comm) { return calls_by("peer", comm, GetParam()); }
  static void expect_right(CudaSeat& seat, fcclComm_t comm, const std::vector<Sum>& sums, const std::vector<size_t>& counts);
  static void expect_all_by_peer(CudaSeat& seat);
  static auto call() { return GetParam() == fcclCollAllReduce ? fcclAllReduce : fcclReduceScatter; }
  // Blocks of the input.
  static size_t blocks(const CudaSeat& seat) { return GetParam() == fcclCollAllReduce ? 1 : static_cast<size_t>(seat.ranks()); }

  const Setting path{"FCCL_CUDA_PATH", "peer"};
  const Setting slots{"FCCL_CUDA_LANDING", kSmallSlots};
};

// Makes calls of many kinds and sizes, each of which must be right.
void CudaSums::expect_right(CudaSeat& seat, fcclComm_t comm, const std::vector<Sum>& sums, const std::vector<size_t>& counts) {
  int iteration = 0;
  for (const Sum& sum : sums)
    for (const size_t count : counts) {
      ++iteration;
      EXPECT_EQ(try_on_gpu({.collective = GetParam(),
                            .dtype = sum.dtype,
                            .count = count,
                            .op = sum.op,
                            .in_place = iteration % 2 == 0 && !sum.widens,
                            .misalignment = static_cast<size_t>(iteration % 4),
                            .iteration = iteration,
                            .widens = sum.widens},
                           seat, comm, iteration % 3 == 0),
                "");
    }
}

void CudaSums::expect_all_by_peer(CudaSeat& seat) {
  const Comm comm(seat.seat(), config_of_cuda_tests());
  const std::vector<Sum> sums = with_kernel();
  const std::vector<size_t> each = counts(seat.ranks());
  expect_right(seat, comm, sums, each);
  EXPECT_TRUE(succeeded(fcclCommFinalize(comm)));
  EXPECT_EQ(calls_by_peer(comm), sums.size() * each.size());
}

TEST_P(CudaSums, of_threads_have_the_written_value_for_each_kernel) {
  for (int ranks = 2; ranks <= 8; ++ranks) run_on_gpus({.ranks = ranks, .gpus = ranks}, expect_all_by_peer);
}

TEST_P(CudaSums, of_threads_that_share_gpus_have_the_written_value) {
  run_on_gpus({.ranks = 3, .gpus = 1}, expect_all_by_peer);
  run_on_gpus({.ranks = 4, .gpus = 2, .options = {.delay_us = 200}}, expect_all_by_peer);
}

TEST_P(CudaSums, of_processes_have_the_written_value) {
  if (!sees_processes()) GTEST_SKIP() << "the thread sanitizer sees one process";
  run_on_gpus({.ranks = 3, .host_of = {0, 0, 0}}, expect_all_by_peer);
}

TEST_P(CudaSums, without_a_kernel_or_too_short_bounce) {
  run_on_gpus({.ranks = 3, .gpus = 3}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    expect_right(seat, comm, {std::begin(kWithoutKernel), std::end(kWithoutKernel)}, counts(3));
    // Less than 256 bytes.
    expect_right(seat, comm, {{fcclFloat32, ReduceOp::sum}}, {0, 1, 21});
    EXPECT_TRUE(succeeded(fcclCommFinalize(comm)));
    EXPECT_EQ(calls_by_peer(comm), 0U);
  });
}

TEST_P(CudaSums, among_more_ranks_than_kernels_serve_bounce) {
  run_on_gpus({.ranks = 9, .gpus = 3}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    expect_right(seat, comm, {{fcclFloat32, ReduceOp::sum}}, {1025});
    EXPECT_TRUE(succeeded(fcclCommFinalize(comm)));
    EXPECT_EQ(calls_by_peer(comm), 0U);
  });
}

TEST_P(CudaSums, go_on_beside_gathers_and_bounced_calls_while_the_host_runs_ahead) {
  const Setting buffer("FCCL_CUDA_BUFFER", "4096"), queue("FCCL_CUDA_QUEUE", "40");
  run_on_gpus({.ranks = 3, .gpus = 3}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    const fcclColl_t in_turn[] = {GetParam(), fcclCollReduce, fcclCollAllGather, GetParam()};
    std::vector<std::unique_ptr<CudaTrial>> trials;
    for (int i = 0; i < 48; ++i)
      trials.push_back(std::make_unique<CudaTrial>(Recipe{.collective = in_turn[i % 4],
                                                          .dtype = fcclFloat32,
                                                          .count = 100 + static_cast<size_t>(i) * 97,
                                                          .op = i % 4 == 2 ? ReduceOp::sum : kOps[i % 3],
                                                          .iteration = i},
                                                   seat, i % 2 == 0));
    for (const auto& trial : trials) EXPECT_TRUE(succeeded(trial->issue(comm)));
    seat.gpu().synchronize(seat.stream());
    for (const auto& trial : trials) EXPECT_EQ(trial->fault(), "");
    EXPECT_TRUE(succeeded(fcclCommFinalize(comm)));
    EXPECT_EQ(calls_by_peer(comm), 24U);
  });
}

// One rank's buffers are pinned host memory: its thread copies, and the others go on as they would.
TEST_P(CudaSums, with_buffers_in_pinned_memory_are_copied_by_their_thread) {
  const Setting buffer("FCCL_CUDA_BUFFER", "4096");
  run_on_gpus({.ranks = 3, .gpus = 3, .options = {.delay_us = 200}}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    constexpr size_t kCount = 5'000;
    using enum MemoryPlace;
    for (int round = 0; round < 12; ++round) {
      const bool is_pinned = round % 3 == seat.rank();
      const size_t given = blocks(seat) * kCount;
      std::byte* const from = seat.gpu().allocate(is_pinned && round % 4 != 1 ? pinned_host : this_device, given * 4);
      std::byte* const to = seat.gpu().allocate(is_pinned && round % 4 != 2 ? pinned_host : this_device, kCount * 4);
      std::vector<float> sent(given), found(kCount), expected(kCount);
      std::iota(sent.begin(), sent.end(), static_cast<float>(100'000 * seat.rank() + round));
      const float first = blocks(seat) == 1 ? 0 : static_cast<float>(seat.rank()) * kCount;
      for (size_t i = 0; i < kCount; ++i)
        expected[i] = 300'000 + 3 * (first + static_cast<float>(i) + static_cast<float>(round));
      seat.gpu().launch(seat.stream(), [=, &sent] {
        std::this_thread::sleep_for(1ms);
        simulated::store(from, std::as_bytes(std::span(sent)));
      });
      EXPECT_TRUE(succeeded(call()(from, to, kCount, fcclFloat32, fcclSum, comm, seat.stream().native)));
      seat.gpu().synchronize(seat.stream());
      seat.gpu().read(to, std::as_writable_bytes(std::span(found)));
      EXPECT_EQ(found, expected) << "round " << round;
    }
    EXPECT_TRUE(succeeded(fcclCommFinalize(comm)));
    EXPECT_EQ(calls_by_peer(comm), 12U);
    seat.meet();
  });
}

// Also where one rank's factor lies in pinned memory, and the others' in that of their GPUs.
TEST_P(CudaSums, multiply_by_factors_wherever_they_lie) {
  run_on_gpus({.ranks = 3, .gpus = 3}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    constexpr size_t kCount = 1'000;
    for (int round = 0; round < 6; ++round) {
      const bool is_pinned = round % 3 == seat.rank();
      std::byte* const scalar = seat.gpu().allocate(is_pinned ? MemoryPlace::pinned_host : MemoryPlace::this_device, 4);
      std::byte* const from = seat.take(blocks(seat) * kCount * 4);
      std::byte* const to = seat.take(kCount * 4);
      const std::vector<float> sent(blocks(seat) * kCount, static_cast<float>(round + 1));
      const float factor = static_cast<float>(1 << (2 * seat.rank()));
      seat.gpu().write(from, std::as_bytes(std::span(sent)));
      seat.gpu().launch(seat.stream(), [=] {
        std::this_thread::sleep_for(1ms);
        simulated::store(scalar, std::as_bytes(std::span(&factor, 1)));
      });
      fcclRedOp_t op{};
      EXPECT_TRUE(succeeded(fcclRedOpCreatePreMulSum(&op, scalar, fcclFloat32, fcclScalarDevice, comm)));
      EXPECT_TRUE(succeeded(call()(from, to, kCount, fcclFloat32, op, comm, seat.stream().native)));
      seat.gpu().synchronize(seat.stream());
      std::vector<float> found(kCount);
      seat.gpu().read(to, std::as_writable_bytes(std::span(found)));
      EXPECT_EQ(found, std::vector<float>(kCount, 21.0F * static_cast<float>(round + 1))) << "round " << round;
      EXPECT_TRUE(succeeded(fcclRedOpDestroy(op, comm)));
    }
    EXPECT_TRUE(succeeded(fcclCommFinalize(comm)));
    EXPECT_EQ(calls_by_peer(comm), 6U);
    seat.meet();
  });
}

TEST_P(CudaSums, that_differ_show_both) {
  run_on_gpus({.ranks = 2, .gpus = 2}, [](CudaSeat& seat) {
    Comm comm(seat.seat(), config_of_cuda_tests());
    expect_right(seat, comm, {{fcclFloat32, ReduceOp::sum}}, {1000});
    constexpr size_t kCount = 10'000;
    std::byte* const from = seat.take(kCount * 8);
    std::byte* const to = seat.take(kCount * 4);
    seat.meet();
    (void)call()(from, to, kCount - static_cast<size_t>(seat.rank()), fcclFloat32, fcclSum, comm, seat.stream().native);
    EXPECT_NE(fcclCommFinalize(comm), fcclSuccess);
    expect_words(fcclGetLastError(comm), {"(sum) of 10000 float32", "(sum) of 9999 float32"});
    fcclCommDestroy(comm.release());
    seat.gpu().synchronize(seat.stream());
    seat.meet();
  });
}

// Two GPUs, of which the library has no kernels for the second.
void run_without_sums(const std::function<void(CudaSeat&)>& body) {
  simulated::uninstall_all();
  std::vector<std::shared_ptr<simulated::SimulatedGpu>> gpus;
  for (int ordinal = 0; ordinal < 2; ++ordinal) {
    gpus.push_back(std::make_shared<simulated::SimulatedGpu>(simulated::GpuOptions{.ordinal = ordinal, .sums = ordinal == 0}));
    simulated::install(gpus.back());
  }
  run_ranks({.as = RanksAs::threads, .ranks = 2}, [&](const Seat& seat) {
    simulated::set_current_device(seat.rank);
    CudaSeat own(seat, gpus[static_cast<size_t>(seat.rank)]);
    body(own);
  });
  simulated::uninstall_all();
}

// Makes no more queues once kernels have been loaded.
class GpuWithFewQueues : public simulated::SimulatedGpu {
 public:
  using SimulatedGpu::SimulatedGpu;
  Result<void> load(size_t sources) override {
    has_loaded_ = true;
    return SimulatedGpu::load(sources);
  }
  Result<Queue> make_queue() override {
    if (has_loaded_) return fail(fcclUnhandledCudaError, "there is no queue left");
    return SimulatedGpu::make_queue();
  }

 private:
  std::atomic<bool> has_loaded_{false};
};

TEST_P(CudaSums, whose_queue_cannot_be_made_are_every_ranks_failure) {
  simulated::uninstall_all();
  const auto few = std::make_shared<GpuWithFewQueues>(simulated::GpuOptions{.ordinal = 0});
  const auto many = std::make_shared<simulated::SimulatedGpu>(simulated::GpuOptions{.ordinal = 1});
  simulated::install(few);
  simulated::install(many);
  run_ranks({.as = RanksAs::threads, .ranks = 2}, [&](const Seat& seat) {
    simulated::set_current_device(seat.rank);
    CudaSeat own(seat, seat.rank == 0 ? few : many);
    Comm comm(seat, config_of_cuda_tests());
    std::byte* const from = own.take(8'000);
    std::byte* const to = own.take(4'000);
    EXPECT_EQ(call()(from, to, 1000, fcclFloat32, fcclSum, comm, own.stream().native), fcclUnhandledCudaError);
    expect_words(fcclGetLastError(comm),
                 {"rank 0 could not run " + std::string(row_of(GetParam()).name), "there is no queue left"});
    fcclCommDestroy(comm.release());
    seat.meet();
  });
  simulated::uninstall_all();
}

// Nothing else than its stream keeps a program back then.
TEST_P(CudaSums, of_a_failed_call_wait_for_its_stream) {
  run_on_gpus({.ranks = 2, .gpus = 2}, [](CudaSeat& seat) {
    Comm comm(seat.seat(), config_of_cuda_tests());
    expect_right(seat, comm, {{fcclFloat32, ReduceOp::sum}}, {1000});
    constexpr size_t kCount = 2'000;
    std::byte* const from = seat.take(2 * kCount * 4);
    std::byte* const to = seat.take(kCount * 4);
    const std::vector<int32_t> before = seat.read(to, kCount);
    seat.meet();
    seat.hold();
    EXPECT_TRUE(succeeded(call()(from, to, kCount, fcclFloat32, fcclSum, comm, seat.stream().native)));
    seat.meet();
    EXPECT_TRUE(succeeded(fcclCommRevoke(comm, 0)));
    EXPECT_TRUE(succeeded(fcclCommAbort(comm.release())));
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(seat.read(to, kCount), before);
    seat.release();
    seat.gpu().synchronize(seat.stream());
    seat.meet();
  });
}

TEST_P(CudaSums, are_refused_on_all_ranks_where_one_has_no_kernels) {
  run_without_sums([](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    std::byte* const from = seat.take(8'000);
    std::byte* const to = seat.take(4'000);
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(call()(from, to, 1000, fcclFloat32, fcclSum, comm, seat.stream().native), fcclInvalidUsage);
      expect_words(fcclGetLastError(nullptr), {"FCCL_CUDA_PATH=peer, but rank 1 has no kernels of sums, since FCCL was built "
                                               "without nvcc: take host, bounce or auto"});
    }
    expect_right(seat, comm, {{fcclInt32, ReduceOp::sum}}, counts(2));
    EXPECT_EQ(try_on_gpu({.collective = fcclCollAllGather, .dtype = fcclInt32, .count = 100}, seat, comm), "");
    EXPECT_TRUE(succeeded(fcclCommFinalize(comm)));
    EXPECT_EQ(calls_by("peer", comm, fcclCollAllGather), 1U);
  });
}

TEST_P(CudaSums, by_auto_bounce_so_that_no_call_waits_for_kernels_to_be_loaded) {
  const Setting unasked("FCCL_CUDA_PATH", "auto");
  run_on_gpus({.ranks = 2, .gpus = 2}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    expect_right(seat, comm, {{fcclFloat32, ReduceOp::sum}}, counts(2));
    EXPECT_TRUE(succeeded(fcclCommFinalize(comm)));
    EXPECT_EQ(calls_by_peer(comm), 0U);
  });
}

TEST_P(CudaSums, end_and_name_a_rank_that_is_killed_at_any_step) {
  if (!sees_processes()) GTEST_SKIP() << "the thread sanitizer sees one process";
  std::mt19937_64 dice(38);
  for (int round = 0; round < 6; ++round)
    run_on_gpus({.ranks = 3, .host_of = {0, 0, 0}, .killed = {2}}, [operations = dice() % 150](CudaSeat& seat) {
      Comm comm(seat.seat(), config_of_cuda_tests());
      expect_right(seat, comm, {{fcclFloat32, ReduceOp::sum}}, {1000});
      expect_end_by_death(seat, comm, {.collective = GetParam(), .dtype = fcclFloat32, .count = 30'000}, operations);
    });
}

INSTANTIATE_TEST_SUITE_P(Of, CudaSums, ::testing::Values(fcclCollReduceScatter, fcclCollAllReduce),
                         [](const auto& info) { return row_of(info.param).name; });

}  // namespace
}  // namespace fccl::core::testing
