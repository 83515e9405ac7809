// Every collective in CUDA memory, by both paths: what comes out is what it means, to the bit.
#include "cuda/cuda_ranks.h"

namespace fccl::core::testing {
namespace {

class CudaCollectives : public ::testing::TestWithParam<const char*> {
 protected:
  const Setting path{"FCCL_CUDA_PATH", GetParam()};
  // Small slots, so that calls by them have many steps, and short ones go by them.
  const Setting slots{"FCCL_CUDA_LANDING", "16384"};
};

TEST_P(CudaCollectives, have_the_written_value_for_every_type_and_operator) {
  const Setting buffer("FCCL_CUDA_BUFFER", "8192");
  run_on_gpus({.ranks = 3}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    int iteration = 0;
    for (const fcclColl_t collective : kEveryCollective)
      for (const auto& [dtype, op] : every_reduction()) {
        if (!reduces(collective) && op != ReduceOp::sum) continue;
        ++iteration;
        EXPECT_EQ(try_on_gpu({.collective = collective,
                              .dtype = dtype,
                              .count = 331,
                              .op = op,
                              .root = iteration % seat.ranks(),
                              .in_place = iteration % 3 == 0,
                              .iteration = iteration},
                             seat, comm),
                  "");
      }
  });
}

TEST_P(CudaCollectives, into_float32_have_the_written_value_whole_and_in_sub_calls) {
  const Setting buffer("FCCL_CUDA_BUFFER", "4096");
  run_on_gpus({.ranks = 3}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    int iteration = 0;
    for (const fcclColl_t collective : kReducers)
      for (const fcclDataType_t dtype : {fcclFloat16, fcclBfloat16, fcclFloat8e4m3, fcclFloat8e5m2})
        for (const size_t count : {0, 37, 2049})
          for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::premul_sum})
            EXPECT_EQ(try_on_gpu({.collective = collective,
                                  .dtype = dtype,
                                  .count = count,
                                  .op = op,
                                  .root = ++iteration % seat.ranks(),
                                  .iteration = iteration,
                                  .widens = true},
                                 seat, comm, op == ReduceOp::premul_sum && iteration % 2 == 0),
                      "");
  });
}

TEST_P(CudaCollectives, reach_every_rank_with_every_size_in_place_and_not) {
  const Setting buffer("FCCL_CUDA_BUFFER", "4096");
  constexpr size_t kCounts[] = {0, 1, 37, 64, 515};
  for (int ranks = 1; ranks <= 8; ++ranks)
    run_on_gpus({.ranks = ranks, .gpus = ranks % 3 + 1}, [&](CudaSeat& seat) { expect_every_collective(seat, kCounts); });
}

TEST_P(CudaCollectives, longer_than_the_buffer_come_in_sub_calls) {
  const Setting buffer("FCCL_CUDA_BUFFER", "8192");
  run_on_gpus({.ranks = 3}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    int iteration = 0;
    for (const fcclColl_t collective : kEveryCollective)
      for (const size_t count : {4'000, 20'001})
        EXPECT_EQ(try_on_gpu({.collective = collective,
                              .dtype = fcclBfloat16,
                              .count = count,
                              .root = ++iteration % seat.ranks(),
                              .in_place = iteration % 2 == 0,
                              .iteration = iteration},
                             seat, comm),
                  "");
  });
}

TEST_P(CudaCollectives, are_one_call_in_the_counters_however_they_are_cut) {
  const Setting buffer("FCCL_CUDA_BUFFER", "4096");
  run_on_gpus({.ranks = 2}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    EXPECT_EQ(try_on_gpu({.collective = fcclCollAllGather, .dtype = fcclInt8, .count = 10'000}, seat, comm), "");
    EXPECT_EQ(try_on_gpu({.collective = fcclCollAllGather, .dtype = fcclInt8, .count = 10}, seat, comm), "");
    fcclCounter_t counter;
    EXPECT_TRUE(succeeded(fcclCommFinalize(comm)));
    EXPECT_TRUE(succeeded(fcclCommGetCounter(comm, fcclCollAllGather, &counter)));
    EXPECT_EQ(counter.calls, 2U);
    EXPECT_EQ(counter.bytes, 20'020U);
  });
}

TEST_P(CudaCollectives, take_a_factor_from_the_gpu_when_the_stream_has_come_to_it) {
  const Setting buffer("FCCL_CUDA_BUFFER", "4096");
  run_on_gpus({.ranks = 3}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    int iteration = 0;
    for (const fcclDataType_t dtype : {fcclFloat32, fcclInt8, fcclBfloat16, fcclFloat64})
      for (const size_t count : {5, 3000})
        for (const fcclColl_t collective : kReducers)
          EXPECT_EQ(try_on_gpu({.collective = collective,
                                .dtype = dtype,
                                .count = count,
                                .op = ReduceOp::premul_sum,
                                .iteration = ++iteration},
                               seat, comm, true),
                    "");
  });
}

TEST_P(CudaCollectives, work_where_the_gpu_copies_rows_of_no_large_pitch) {
  const Setting buffer("FCCL_CUDA_BUFFER", "4096"), queue("FCCL_CUDA_QUEUE", "32");
  run_on_gpus({.ranks = 8, .options = {.most_pitch = 1000}}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    for (const fcclColl_t collective : {fcclCollAllGather, fcclCollReduceScatter, fcclCollAlltoAll})
      EXPECT_EQ(try_on_gpu({.collective = collective, .dtype = fcclFloat32, .count = 1000}, seat, comm), "");
  });
}

TEST_P(CudaCollectives, go_on_while_the_host_runs_ahead_of_the_gpu) {
  const Setting buffer("FCCL_CUDA_BUFFER", "4096");
  run_on_gpus({.ranks = 3}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    std::mt19937_64 generator(5);
    std::vector<std::unique_ptr<CudaTrial>> trials;
    for (int i = 0; i < 60; ++i)
      trials.push_back(std::make_unique<CudaTrial>(random_recipe(generator, seat.ranks(), 20'000, i), seat));
    for (const auto& trial : trials) EXPECT_TRUE(succeeded(trial->issue(comm)));
    seat.gpu().synchronize(seat.stream());
    for (const auto& trial : trials) EXPECT_EQ(trial->fault(), "");
  });
}

TEST_P(CudaCollectives, split_into_communicators_of_the_same_gpu) {
  const Setting buffer("FCCL_CUDA_BUFFER", "65536");
  run_on_gpus({.ranks = 4, .gpus = 2}, [](CudaSeat& seat) {
    const Comm parent(seat.seat(), config_of_cuda_tests());
    EXPECT_EQ(try_on_gpu({.collective = fcclCollAllGather, .dtype = fcclInt32, .count = 100}, seat, parent), "");
    fcclComm_t child = nullptr;
    ASSERT_TRUE(succeeded(fcclCommSplit(parent, 0, seat.rank(), &child, nullptr)));
    const Comm owned(child);
    int device = -1;
    EXPECT_TRUE(succeeded(fcclCommCuDevice(child, &device)));
    EXPECT_EQ(device, seat.rank() % 2);
    EXPECT_EQ(try_on_gpu({.collective = fcclCollAllReduce, .dtype = fcclInt32, .count = 100}, seat, child), "");
  });
}

class CudaCampaign : public CudaCollectives {};

TEST_P(CudaCampaign, every_collective_type_operator_size_number_of_ranks_and_placement) {
  const Setting buffer("FCCL_CUDA_BUFFER", "4096");
  for (int ranks = 1; ranks <= 8; ++ranks)
    run_on_gpus({.ranks = ranks, .gpus = 1 + ranks % 3, .limit = std::chrono::seconds(600)}, [](CudaSeat& seat) {
      const Comm comm(seat.seat(), config_of_cuda_tests());
      int iteration = 0;
      for (const fcclColl_t collective : kEveryCollective)
        for (const auto& [dtype, op] : every_reduction())
          for (const size_t count : {0, 1, 37, 64, 515, 2049})
            for (const bool in_place : {false, true}) {
              if (!reduces(collective) && op != ReduceOp::sum) continue;
              EXPECT_EQ(try_on_gpu({.collective = collective,
                                    .dtype = dtype,
                                    .count = count,
                                    .op = op,
                                    .root = ++iteration % seat.ranks(),
                                    .in_place = in_place,
                                    .misalignment = static_cast<size_t>(iteration % 4),
                                    .iteration = iteration},
                                   seat, comm, op == ReduceOp::premul_sum && in_place),
                        "");
            }
    });
}

INSTANTIATE_TEST_SUITE_P(By, CudaCampaign, ::testing::ValuesIn(kCudaPaths), [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(By, CudaCollectives, ::testing::ValuesIn(kCudaPaths), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace fccl::core::testing
