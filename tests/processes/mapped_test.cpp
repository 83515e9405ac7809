// Memory that peers map, between ranks as threads and as processes: results, failures and forks.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "processes/size.h"
#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

class MappedBuffers : public ::testing::TestWithParam<Size> {};

std::vector<Recipe> recipes_of(Buffers buffers) {
  std::vector<Recipe> recipes;
  size_t next = 0;
  for (const auto& collectives : {std::vector(std::begin(kEveryMover), std::end(kEveryMover)),
                                  std::vector(std::begin(kEveryReducer), std::end(kEveryReducer))})
    for (const fcclColl_t collective : collectives)
      for (const size_t bytes : {size_t{5}, size_t{5000}, size_t{70'001}, size_t{1'200'003}}) {
        const auto& [dtype, op] = every_reduction()[next * 7 % every_reduction().size()];
        ++next;
        recipes.push_back({.collective = collective,
                           .dtype = dtype,
                           .count = bytes / size_of(dtype) + 1,
                           .op = op,
                           .root = static_cast<int>(next % 2),
                           .in_place = next % 3 == 0,
                           .misalignment = next % 4 == 0 ? next % 16 : 0,
                           .iteration = static_cast<int>(next),
                           .is_displaced = next % 2 == 0,
                           .buffers = buffers});
      }
  return recipes;
}

void try_all_of(const Seat& seat, fcclComm_t comm, Buffers buffers, fcclStream_t stream = nullptr) {
  for (const Recipe& recipe : recipes_of(buffers)) EXPECT_EQ(try_collective(recipe, seat.rank, seat.ranks, comm, stream), "");
}

TEST_P(MappedBuffers, have_the_bits_of_every_collective) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    try_all_of(seat, comm, Buffers::arena);
  });
}

TEST_P(MappedBuffers, may_be_those_of_some_ranks_and_calls_only) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    try_all_of(seat, comm, Buffers::mixed);
    try_all_of(seat, comm, Buffers::own);
    try_all_of(seat, comm, Buffers::mixed);
  });
}

TEST_P(MappedBuffers, of_no_bytes_may_be_null) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    constexpr size_t kCount = 50'000;
    int *given = nullptr, *taken = nullptr;
    ASSERT_TRUE(succeeded(fcclMemAlloc(reinterpret_cast<void**>(&taken), kCount * seat.ranks * sizeof(int))));
    const size_t own = seat.rank == 0 ? 0 : kCount * sizeof(int);
    ASSERT_TRUE(succeeded(fcclMemAlloc(reinterpret_cast<void**>(&given), own)));
    std::vector<size_t> counts(seat.ranks, kCount);
    counts[0] = 0;
    for (int iteration = 0; iteration < 3; ++iteration) {
      for (size_t i = 0; i < counts[seat.rank]; ++i) given[i] = static_cast<int>(i) * 7 + seat.rank + iteration;
      std::memset(taken, 0xa5, kCount * seat.ranks * sizeof(int));
      ASSERT_TRUE(succeeded(fcclAllGatherV(given, counts[seat.rank], taken, counts.data(), nullptr, fcclInt32, comm, nullptr)));
      for (int rank = 1; rank < seat.ranks; ++rank)
        for (size_t i = 0; i < kCount; ++i)
          ASSERT_EQ(taken[(rank - 1) * kCount + i], static_cast<int>(i) * 7 + rank + iteration) << i;
    }
    EXPECT_TRUE(succeeded(fcclMemFree(given)));
    EXPECT_TRUE(succeeded(fcclMemFree(taken)));
  });
}

TEST_P(MappedBuffers, have_every_type_and_operator_in_the_written_order) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    int iteration = 0;
    for (const auto& [dtype, op] : every_reduction())
      for (const fcclColl_t collective : kEveryReducer) {
        Recipe recipe{.collective = collective, .dtype = dtype, .count = 3001, .op = op, .iteration = ++iteration};
        recipe.buffers = Buffers::arena;
        recipe.widens = may_widen(collective, dtype) && iteration % 2 == 0;
        recipe.in_place = !recipe.widens && iteration % 3 == 0;
        EXPECT_EQ(try_collective(recipe, seat.rank, seat.ranks, comm), "");
      }
  });
}

TEST_P(MappedBuffers, on_streams_of_both_lanes_keep_their_results_apart) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    std::array<fcclStream_t, 2> streams{};
    for (fcclStream_t& stream : streams) ASSERT_TRUE(succeeded(fcclStreamCreate(&stream)));
    for (int batch = 0; batch < 5; ++batch) {
      std::vector<std::unique_ptr<Trial>> trials;
      for (int i = 0; i < 6; ++i) {
        const fcclColl_t collective = std::array{fcclCollAllGather, fcclCollReduceScatter, fcclCollAllReduce}[i % 3];
        Recipe recipe{
            .collective = collective, .dtype = fcclFloat32, .count = size_t{60'000} * (1 + batch), .iteration = batch * 10 + i};
        recipe.buffers = i < 3 ? Buffers::arena : Buffers::mixed;
        trials.push_back(std::make_unique<Trial>(recipe, seat.rank, seat.ranks));
        EXPECT_TRUE(succeeded(trials.back()->issue(comm, streams[i % 2])));
      }
      for (fcclStream_t stream : streams) EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
      for (const auto& trial : trials) EXPECT_EQ(trial->fault(), "");
    }
    for (fcclStream_t stream : streams) EXPECT_TRUE(succeeded(fcclStreamDestroy(stream)));
  });
}

TEST_P(MappedBuffers, serve_every_communicator_of_a_process) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    try_all_of(seat, comm, Buffers::arena);
    fcclComm_t half = nullptr;
    ASSERT_TRUE(succeeded(fcclCommSplit(comm, 0, -seat.rank, &half, nullptr)));
    const int rank = seat.ranks - 1 - seat.rank;
    for (const Recipe& recipe : recipes_of(Buffers::arena)) EXPECT_EQ(try_collective(recipe, rank, seat.ranks, half), "");
    EXPECT_TRUE(succeeded(fcclCommDestroy(half)));
    try_all_of(seat, comm, Buffers::mixed);
  });
}

TEST_P(MappedBuffers, are_memory_like_any_other_where_mapping_is_off) {
  const Setting off("FCCL_MAPPED", "off");
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    try_all_of(seat, comm, Buffers::arena);
  });
}

TEST_P(MappedBuffers, of_calls_that_differ_are_an_error_on_every_rank) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    Recipe recipe{.collective = fcclCollAllReduce, .dtype = fcclInt32, .count = 50'000, .buffers = Buffers::arena};
    for (recipe.iteration = 0; recipe.iteration < 3; ++recipe.iteration)
      EXPECT_EQ(try_collective(recipe, seat.rank, seat.ranks, comm), "");
    seat.meet();
    recipe.count += seat.rank == 0 ? 1 : 0;
    Trial trial(recipe, seat.rank, seat.ranks);
    EXPECT_EQ(trial.issue(comm), fcclInvalidUsage);
    const std::string text = fcclGetLastError(comm);
    EXPECT_NE(text.find("50001"), std::string::npos) << text;
    EXPECT_NE(text.find("50000"), std::string::npos) << text;
  });
}

TEST_P(MappedBuffers, of_a_rank_that_does_not_come_are_waited_for_until_the_deadline) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    Recipe recipe{.collective = fcclCollAllGather, .dtype = fcclInt32, .count = 50'000, .buffers = Buffers::arena};
    for (recipe.iteration = 0; recipe.iteration < 3; ++recipe.iteration)
      EXPECT_EQ(try_collective(recipe, seat.rank, seat.ranks, comm), "");
    seat.meet();
    EXPECT_TRUE(succeeded(fcclCommSetTimeout(comm, 100)));
    if (seat.rank != 1) {
      Trial trial(recipe, seat.rank, seat.ranks);
      EXPECT_EQ(trial.issue(comm), fcclTimeout);
    }
    seat.meet();
  });
}

INSTANTIATE_TEST_SUITE_P(As, MappedBuffers, ::testing::ValuesIn(sizes_after_every_change(2, 5)), name_of_size);

#if !defined(FCCL_RANKS_AS_THREADS_ONLY)

size_t count_arenas() {
  std::ifstream file("/proc/self/maps");
  size_t found = 0;
  for (std::string line; std::getline(file, line);) found += line.find("fccl-arena") != std::string::npos ? 1 : 0;
  return found;
}

TEST(MappedBuffersOfProcesses, that_one_rank_cannot_map_go_through_slots) {
  if (kSlowdown > 1) GTEST_SKIP() << "a sanitizer needs descriptors of its own to check an object's type";
  const Setting level("FCCL_LOG", "info");
  run_ranks({.as = RanksAs::processes, .ranks = 3}, [](const Seat& seat) {
    const Comm comm(seat);
    void* kept = nullptr;
    EXPECT_TRUE(succeeded(fcclMemAlloc(&kept, 1)));
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    const rlimit none{0, before.rlim_max};
    if (seat.rank == 1) setrlimit(RLIMIT_NOFILE, &none);
    try_all_of(seat, comm, Buffers::arena);
    setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_EQ(count_arenas(), 1U) << "no peer's is kept once mapping is over";
    EXPECT_TRUE(succeeded(fcclMemFree(kept)));
  });
}

TEST(MappedBuffersOfProcesses, are_never_changed_by_a_forked_child) {
  run_ranks({.as = RanksAs::processes, .ranks = 2}, [](const Seat& seat) {
    const Comm comm(seat);
    constexpr size_t kCount = 100'000;
    int* data = nullptr;
    int* sum = nullptr;
    ASSERT_TRUE(succeeded(fcclMemAlloc(reinterpret_cast<void**>(&data), kCount * sizeof(int))));
    ASSERT_TRUE(succeeded(fcclMemAlloc(reinterpret_cast<void**>(&sum), kCount * sizeof(int))));
    for (int iteration = 0; iteration < 3; ++iteration) {
      for (size_t i = 0; i < kCount; ++i) data[i] = static_cast<int>(i) * (seat.rank + 1) + iteration;
      const pid_t child = fork();
      if (child == 0) {
        const bool reads = data[777] == 777 * (seat.rank + 1) + iteration;
        std::memset(data, 0x5a, kCount * sizeof(int));
        void* own = nullptr;
        const bool allocates = fcclMemAlloc(&own, 5000) == fcclSuccess && fcclMemFree(own) == fcclSuccess;
        _exit(reads && allocates && fcclMemFree(data) == fcclSuccess && fcclCommDestroy(comm) == fcclSuccess ? 0 : 1);
      }
      int status = -1;
      EXPECT_EQ(waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
      EXPECT_TRUE(succeeded(fcclAllReduce(data, sum, kCount, fcclInt32, fcclSum, comm, nullptr)));
      for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(sum[i], static_cast<int>(i) * 3 + 2 * iteration) << i;
    }
    EXPECT_TRUE(succeeded(fcclMemFree(data)));
    EXPECT_TRUE(succeeded(fcclMemFree(sum)));
  });
}

#endif

TEST(Registration, checks_its_arguments_and_changes_nothing) {
  run_ranks({.as = RanksAs::threads, .ranks = 2}, [](const Seat& seat) {
    const Comm comm(seat);
    std::array<int, 4> buffer{};
    void *first = nullptr, *second = nullptr;
    EXPECT_TRUE(succeeded(fcclCommRegister(comm, buffer.data(), sizeof buffer, &first)));
    EXPECT_TRUE(succeeded(fcclCommRegister(comm, buffer.data(), sizeof buffer, &second)));
    EXPECT_NE(first, second);
    EXPECT_TRUE(succeeded(fcclCommDeregister(comm, first)));
    EXPECT_EQ(fcclCommDeregister(comm, first), fcclInvalidArgument);
    EXPECT_EQ(fcclCommDeregister(comm, nullptr), fcclInvalidArgument);
    EXPECT_EQ(fcclCommRegister(comm, nullptr, 1, &first), fcclInvalidArgument);
    EXPECT_EQ(fcclCommRegister(comm, buffer.data(), 1, nullptr), fcclInvalidArgument);
    EXPECT_TRUE(succeeded(fcclBarrier(comm, nullptr)));
  });
}

TEST(MemUsage, tells_what_is_allocated_and_the_most_that_was) {
  fcclMemUsage_t usage{};
  usage.size = sizeof usage;
  ASSERT_TRUE(succeeded(fcclMemGetUsage(&usage)));
  EXPECT_EQ(usage.allocated + usage.mostAllocated + usage.filled + usage.reserved, 0U) << "before the first allocation";
  void* memory = nullptr;
  ASSERT_TRUE(succeeded(fcclMemAlloc(&memory, 40'960)));
  std::memset(memory, 1, 40'960);
  ASSERT_TRUE(succeeded(fcclMemFree(memory)));
  ASSERT_TRUE(succeeded(fcclMemAlloc(&memory, 8192)));
  ASSERT_TRUE(succeeded(fcclMemGetUsage(&usage)));
  EXPECT_EQ(usage.size, sizeof usage);
  EXPECT_EQ(usage.allocated, 8192U);
  EXPECT_EQ(usage.mostAllocated, 40'960U);
  EXPECT_GE(usage.filled, 40'960U);
  EXPECT_GE(usage.reserved, usage.filled);
  EXPECT_TRUE(succeeded(fcclMemFree(memory)));
}

TEST(MemUsage, is_written_as_far_as_the_program_knows_it) {
  fcclMemUsage_t usage{};
  usage.size = offsetof(fcclMemUsage_t, mostAllocated);
  usage.mostAllocated = 77;
  ASSERT_TRUE(succeeded(fcclMemGetUsage(&usage)));
  EXPECT_EQ(usage.mostAllocated, 77U);
  usage.size = 0;
  EXPECT_EQ(fcclMemGetUsage(&usage), fcclInvalidArgument);
  EXPECT_EQ(fcclMemGetUsage(nullptr), fcclInvalidArgument);
}

TEST(MemAlloc, refuses_what_is_wrong_on_its_face) {
  EXPECT_EQ(fcclMemAlloc(nullptr, 5), fcclInvalidArgument);
  int other = 0;
  EXPECT_EQ(fcclMemFree(&other), fcclInvalidArgument);
  EXPECT_NE(std::string(fcclGetLastError(nullptr)).find("fcclMemAlloc"), std::string::npos);
  EXPECT_TRUE(succeeded(fcclMemFree(nullptr)));
  void* nothing = &other;
  EXPECT_TRUE(succeeded(fcclMemAlloc(&nothing, 0)));
  EXPECT_EQ(nothing, nullptr);
}

}  // namespace
}  // namespace fccl::core::testing
