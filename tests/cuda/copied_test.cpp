// How many bytes the processor copies for calls on CUDA memory, by path, as metrics tell it.
#include <array>

#include "cuda/landed_calls.h"

namespace fccl::core::testing {
namespace {

constexpr size_t kCount = 40'000;
constexpr size_t kBlock = kCount * sizeof(float);
constexpr size_t kRanks = 3;
constexpr size_t kCalls = 4;

// Makes calls in the GPU's memory; returns the bytes that this rank's processor has copied for them.
uint64_t copied_by_calls(CudaSeat& seat, fcclComm_t comm, fcclColl_t collective) {
  const uint64_t before = copied_in(comm, collective);
  for (size_t i = 0; i < kCalls; ++i)
    EXPECT_EQ(try_on_gpu({.collective = collective, .dtype = fcclFloat32, .count = kCount, .iteration = static_cast<int>(i)},
                         seat, comm),
              "");
  return copied_in(comm, collective) - before;
}

// A processor adds each byte of the inputs once, and copies each byte of the outputs once, since peers map the buffers that
// calls go through.
void expect_one_copy(CudaSeat& seat) {
  const Comm comm(seat.seat(), config_of_cuda_tests());
  for (const fcclColl_t collective : {fcclCollReduceScatter, fcclCollAlltoAll})
    (void)copied_by_calls(seat, comm, collective);  // ranks map each other's arenas
  EXPECT_EQ(copied_by_calls(seat, comm, fcclCollReduceScatter), kCalls * kRanks * kBlock);
  EXPECT_EQ(copied_by_calls(seat, comm, fcclCollAlltoAll), kCalls * kRanks * kBlock);
  (void)copied_by_calls(seat, comm, fcclCollAllGather);
  // A sub-call is in place.
  EXPECT_EQ(copied_by_calls(seat, comm, fcclCollAllGather), kCalls * (kRanks - 1) * kBlock);
}

TEST(CudaCopied, bytes_of_calls_that_bounce_are_those_of_one_copy) {
  const Setting path("FCCL_CUDA_PATH", "bounce"), buffer("FCCL_CUDA_BUFFER", "262144");
  run_on_gpus({.ranks = kRanks}, expect_one_copy);
}

TEST(CudaCopied, bytes_of_blocking_calls_are_those_of_one_copy) {
  const Setting path("FCCL_CUDA_PATH", "blocking"), buffer("FCCL_CUDA_BUFFER", "262144");
  run_on_gpus({.ranks = kRanks}, expect_one_copy);
}

TEST(CudaCopied, bytes_are_none_where_gpus_move_and_add_all) {
  const Setting path("FCCL_CUDA_PATH", "peer"), slots("FCCL_CUDA_LANDING", kSmallSlots);
  run_on_gpus({.ranks = kRanks, .gpus = kRanks}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    for (const fcclColl_t collective : {fcclCollAllGather, fcclCollBroadcast, fcclCollReduceScatter, fcclCollAllReduce})
      EXPECT_EQ(copied_by_calls(seat, comm, collective), 0U) << collective;
    EXPECT_GT(copied_by_calls(seat, comm, fcclCollReduce), 0U);
    EXPECT_TRUE(succeeded(fcclCommFinalize(comm)));
  });
}

TEST(CudaCopied, bytes_by_slots_in_host_memory_are_those_of_pinned_buffers_alone) {
  const Setting path("FCCL_CUDA_PATH", "host"), slots("FCCL_CUDA_LANDING", kSmallSlots);
  run_on_gpus({.ranks = 2}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    EXPECT_EQ(copied_by_calls(seat, comm, fcclCollAllGather), 0U);
    const MemoryPlace place = seat.rank() == 0 ? MemoryPlace::pinned_host : MemoryPlace::this_device;
    std::byte* const from = seat.gpu().allocate(place, kBlock);
    std::byte* const to = seat.take(2 * kBlock);
    EXPECT_TRUE(succeeded(fcclAllGather(from, to, kCount, fcclFloat32, comm, seat.stream().native)));
    seat.gpu().synchronize(seat.stream());
    EXPECT_EQ(copied_in(comm, fcclCollAllGather), seat.rank() == 0 ? kBlock : 0);
    seat.meet();
  });
}

TEST(CudaCopied, bytes_of_sends_and_uneven_blocks_count_on_their_way_to_host_memory_and_there) {
  run_on_gpus({.ranks = 2}, [](CudaSeat& seat) {
    const Comm comm(seat.seat(), config_of_cuda_tests());
    std::byte* const buffer = seat.take(kBlock);
    void* const stream = seat.stream().native;
    EXPECT_TRUE(succeeded(seat.rank() == 0 ? fcclSend(buffer, kCount, fcclFloat32, 1, comm, stream)
                                           : fcclRecv(buffer, kCount, fcclFloat32, 0, comm, stream)));
    EXPECT_EQ(copied_in(comm, seat.rank() == 0 ? fcclCollSend : fcclCollRecv), 2 * kBlock);
    std::byte* const all = seat.take(2 * kBlock);
    const std::array<size_t, 2> counts{kCount, kCount};
    EXPECT_TRUE(succeeded(fcclAllGatherV(buffer, kCount, all, counts.data(), nullptr, fcclFloat32, comm, stream)));
    // Three blocks go to host memory and from there; of those two or three are read again, as peers read each other's or not.
    EXPECT_GE(copied_in(comm, fcclCollAllGatherV), 5 * kBlock);
    EXPECT_LE(copied_in(comm, fcclCollAllGatherV), 6 * kBlock);
  });
}

TEST(CpuCopied, bytes_are_not_counted) {
  run_on_gpus({.ranks = 2}, [](CudaSeat& seat) {
    fcclConfig_t config = config_of_cuda_tests();
    config.memoryKind = fcclMemoryCpu;
    const Comm comm(seat.seat(), config);
    EXPECT_EQ(try_collective({.collective = fcclCollAllReduce, .dtype = fcclFloat32, .count = kCount}, seat.rank(),
                             seat.ranks(), comm),
              "");
    EXPECT_EQ(copied_in(comm, fcclCollAllReduce), 0U);
  });
}

}  // namespace
}  // namespace fccl::core::testing
