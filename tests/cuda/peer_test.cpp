// Slots in the memory of GPUs: which ranks have them, what is said where they have not, and what a rank that dies leaves.
#include <array>
#include <random>

#include "cuda/landed_calls.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;
using simulated::GpuOptions;
using simulated::SimulatedGpu;

// Ranks that are threads, each with a GPU of its own, which is like this.
void run_on(const std::vector<GpuOptions>& options, const std::function<void(CudaSeat&)>& body) {
  simulated::uninstall_all();
  std::vector<std::shared_ptr<SimulatedGpu>> gpus;
  for (GpuOptions each : options) {
    each.ordinal = static_cast<int>(gpus.size());
    gpus.push_back(std::make_shared<SimulatedGpu>(each));
    simulated::install(gpus.back());
  }
  run_ranks({.as = RanksAs::threads, .ranks = static_cast<int>(options.size())}, [&](const Seat& seat) {
    simulated::set_current_device(seat.rank);
    CudaSeat own(seat, gpus[static_cast<size_t>(seat.rank)]);
    body(own);
  });
  simulated::uninstall_all();
}

// The second GPU cannot reach the third one.
std::vector<GpuOptions> apart() { return {{}, {.cannot_reach = uint64_t{1} << 2}, {}}; }

fcclResult_t gather(CudaSeat& seat, fcclComm_t comm) {
  std::byte* const from = seat.take(64);
  std::byte* const to = seat.take(64 * static_cast<size_t>(seat.ranks()));
  return fcclAllGather(from, to, 16, fcclInt32, comm, seat.stream().native);
}

// The ranks refuse each gather alike, and go on with what needs no slots.
void expect_gathers_refused(CudaSeat& seat, const std::string& obstacle) {
  const Comm comm(seat.seat(), config_of_cuda_tests());
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(gather(seat, comm), fcclInvalidUsage);
    expect_words(fcclGetLastError(nullptr), {"FCCL_CUDA_PATH=peer, but " + obstacle + ": take host, bounce or auto"});
    EXPECT_EQ(try_on_gpu({.collective = fcclCollAllReduce, .dtype = fcclFloat32, .count = 100, .iteration = round}, seat, comm),
              "");
  }
  EXPECT_TRUE(succeeded(fcclCommFinalize(comm)));
}

TEST(CudaPeer, slots_are_the_first_choice_of_auto) {
  const Setting slots("FCCL_CUDA_LANDING", kSmallSlots);
  run_on_gpus({.ranks = 2, .gpus = 2}, [](CudaSeat& seat) { expect_landed(seat, "peer"); });
  if (sees_processes()) run_on_gpus({.ranks = 2, .host_of = {0, 0}}, [](CudaSeat& seat) { expect_landed(seat, "peer"); });
}

// The slots of this process's communicators.
fcclMemUsage_t slots_of_process() {
  fcclMemUsage_t usage{};
  usage.size = sizeof usage;
  EXPECT_TRUE(succeeded(fcclMemGetUsage(&usage)));
  return usage;
}

TEST(CudaPeer, slots_are_counted_while_their_communicators_live) {
  constexpr size_t kRanks = 3, kSlots = 1 << 20;
  const Setting path("FCCL_CUDA_PATH", "peer"), slots("FCCL_CUDA_LANDING", std::to_string(kSlots));
  run_on_gpus({.ranks = kRanks, .gpus = kRanks}, [](CudaSeat& seat) {
    EXPECT_EQ(slots_of_process().gatherSlots + slots_of_process().pairSlots, 0U);
    seat.meet();
    {
      const Comm comm(seat.seat(), config_of_cuda_tests());
      for (const fcclColl_t collective : {fcclCollAllGather, fcclCollReduceScatter})
        EXPECT_EQ(try_on_gpu({.collective = collective, .dtype = fcclFloat32, .count = 30'000}, seat, comm), "");
      seat.meet();
      EXPECT_EQ(slots_of_process().gatherSlots, kRanks * kSlots);
      EXPECT_EQ(slots_of_process().pairSlots, kRanks * kRanks * kSlots / 4);
      EXPECT_TRUE(succeeded(fcclCommFinalize(comm)));
      seat.meet();
    }
    seat.meet();
    EXPECT_EQ(slots_of_process().gatherSlots + slots_of_process().pairSlots, 0U);
  });
}

// Two ranks need a half more for reductions.
TEST(CudaPeer, slots_of_more_than_64_mib_in_all_are_refused_with_what_fits) {
  constexpr size_t kMost = size_t{64} << 20, kMultiple = 16384, kFits = kMost / 3 * 2 / kMultiple * kMultiple;
  const Setting path("FCCL_CUDA_PATH", "peer");
  for (const size_t bytes : {kMost, kFits + kMultiple, kFits}) {
    const Setting slots("FCCL_CUDA_LANDING", std::to_string(bytes));
    run_on_gpus({.ranks = 2, .gpus = 2}, [bytes](CudaSeat& seat) {
      const fcclUniqueId id = agree_on_id(seat.seat());
      fcclConfig_t config = config_of_cuda_tests();
      fcclComm_t comm = nullptr;
      EXPECT_EQ(fcclCommInitRankConfig(&comm, 2, id, seat.rank(), &config), bytes == kFits ? fcclSuccess : fcclInvalidUsage);
      if (bytes != kFits)
        expect_words(fcclGetLastError(nullptr), {"FCCL_CUDA_LANDING=" + std::to_string(bytes), "among 2 ranks",
                                                 "give " + std::to_string(kFits) + " or less"});
      fcclCommDestroy(comm);
      seat.meet();
    });
  }
}

TEST(CudaPeer, slots_are_not_used_where_one_gpu_cannot_reach_another) {
  const Setting slots("FCCL_CUDA_LANDING", kSmallSlots);
  run_on(apart(), [](CudaSeat& seat) { expect_landed(seat, "host"); });
}

TEST(CudaPeer, slots_are_not_used_where_one_gpu_lends_no_memory) {
  const Setting slots("FCCL_CUDA_LANDING", kSmallSlots);
  run_on({{}, {.lends = false}}, [](CudaSeat& seat) { expect_landed(seat, "host"); });
}

TEST(CudaPeer, slots_are_not_used_where_those_of_other_processes_cannot_be_borrowed) {
  if (!sees_processes()) GTEST_SKIP() << "the thread sanitizer sees one process";
  const Setting slots("FCCL_CUDA_LANDING", kSmallSlots);
  run_on_gpus({.ranks = 3, .options = {.borrows = false}, .host_of = {0, 0, 0}},
              [](CudaSeat& seat) { expect_landed(seat, "host"); });
}

TEST(CudaPeer, path_is_refused_with_the_ranks_whose_gpus_are_apart) {
  const Setting path("FCCL_CUDA_PATH", "peer");
  run_on(apart(), [](CudaSeat& seat) { expect_gathers_refused(seat, "rank 1's GPU cannot reach rank 2's"); });
}

TEST(CudaPeer, path_is_refused_with_the_ranks_that_share_a_divided_gpu) {
  if (!sees_processes()) GTEST_SKIP() << "the thread sanitizer sees one process";
  const Setting path("FCCL_CUDA_PATH", "peer");
  run_on_gpus({.ranks = 2, .options = {.is_part_of_gpu = true}, .host_of = {0, 0}},
              [](CudaSeat& seat) { expect_gathers_refused(seat, "ranks 0 and 1 are MIG instances of one GPU"); });
}

TEST(CudaPeer, path_is_refused_on_a_gpu_that_lends_no_memory) {
  const Setting path("FCCL_CUDA_PATH", "peer");
  run_on_gpus({.ranks = 1, .options = {.lends = false}}, [](CudaSeat&) {
    fcclUniqueId id;
    ASSERT_TRUE(succeeded(fcclGetUniqueId(&id)));
    fcclConfig_t config = config_of_cuda_tests();
    fcclComm_t comm = nullptr;
    EXPECT_EQ(fcclCommInitRankConfig(&comm, 1, id, 0, &config), fcclInvalidUsage);
    expect_words(fcclGetLastError(nullptr), {"FCCL_CUDA_PATH=peer, but", "lends no memory", "take host, bounce or auto"});
  });
}

TEST(CudaPeer, slots_of_other_processes_leave_no_descriptor_open) {
  if (!sees_processes()) GTEST_SKIP() << "the thread sanitizer sees one process";
  const Setting path("FCCL_CUDA_PATH", "peer"), slots("FCCL_CUDA_LANDING", kSmallSlots);
  run_on_gpus({.ranks = 3, .host_of = {0, 0, 0}}, [](CudaSeat& seat) {
    std::array<int, 3> open{};
    for (int& each : open) {
      {
        const Comm comm(seat.seat(), config_of_cuda_tests());
        EXPECT_EQ(try_on_gpu({.collective = fcclCollAllGather, .dtype = fcclInt32, .count = 100}, seat, comm), "");
        EXPECT_TRUE(succeeded(fcclCommFinalize(comm)));
      }
      seat.meet();
      each = count_descriptors();
    }
    EXPECT_EQ(open[1], open[2]);
  });
}

TEST(CudaPeer, calls_end_and_name_a_rank_that_is_killed_at_any_step) {
  if (!sees_processes()) GTEST_SKIP() << "the thread sanitizer sees one process";
  const Setting path("FCCL_CUDA_PATH", "peer"), slots("FCCL_CUDA_LANDING", kSmallSlots);
  std::mt19937_64 dice(37);
  for (int round = 0; round < 6; ++round)
    run_on_gpus({.ranks = 3, .host_of = {0, 0, 0}, .killed = {2}}, [operations = dice() % 150](CudaSeat& seat) {
      Comm comm(seat.seat(), config_of_cuda_tests());
      EXPECT_EQ(try_on_gpu({.collective = fcclCollAllGather, .dtype = fcclInt32, .count = 100}, seat, comm), "");
      expect_end_by_death(seat, comm, {.collective = fcclCollAllGather, .dtype = fcclFloat32, .count = 100'000}, operations);
    });
}

}  // namespace
}  // namespace fccl::core::testing
