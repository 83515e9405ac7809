// Collectives whose blocks have counts of their own: AllGatherV, ReduceScatterV, AlltoAllV.
#include "processes/size.h"
#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

constexpr fcclColl_t kUneven[] = {fcclCollAllGatherV, fcclCollReduceScatterV, fcclCollAlltoAllV};

class UnevenCollectives : public ::testing::TestWithParam<Size> {};

// Every pattern of counts, in place and not, with and without gaps.
void try_every_pattern(const Seat& seat, fcclComm_t comm, Recipe recipe) {
  for (recipe.shares = Shares::random; recipe.shares <= Shares::equal;
       recipe.shares = static_cast<Shares>(static_cast<int>(recipe.shares) + 1))
    for (const bool is_displaced : {false, true})
      for (const bool in_place : {false, true}) {
        ++recipe.iteration;
        recipe.is_displaced = is_displaced;
        recipe.in_place = in_place;
        EXPECT_EQ(try_collective(recipe, seat.rank, seat.ranks, comm), "");
      }
}

TEST_P(UnevenCollectives, of_every_pattern_are_right_around_the_edges_of_the_mailbox_and_of_small_slots) {
  const Setting mailbox("FCCL_MAILBOX_BYTES", "128");
  const Setting slots("FCCL_SLOT_BYTES", "192");
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    std::vector<size_t> counts{0, 1, 3};
    for (const size_t bytes : {56, 128, 192, 400}) add_counts_around(counts, bytes, sizeof(int16_t), seat.ranks);
    for (const fcclColl_t collective : kUneven)
      for (const size_t count : counts)
        try_every_pattern(seat, comm,
                          {.collective = collective, .dtype = fcclInt16, .count = count, .misalignment = count % 2});
  });
}

TEST_P(UnevenCollectives, of_every_pattern_are_right_with_the_default_mailbox_and_slots) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    for (const fcclColl_t collective : kUneven)
      for (const size_t count : {1, 900, 5000, 150'000})
        try_every_pattern(seat, comm, {.collective = collective, .dtype = fcclFloat32, .count = count});
  });
}

// A megabyte is what is read at once.
TEST_P(UnevenCollectives, of_every_pattern_are_right_by_cross_memory_attach) {
  const Setting attach("FCCL_CROSS_MEMORY_ATTACH", "on");
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    for (const size_t count : {8192, 1'300'000})
      try_every_pattern(seat, comm, {.collective = fcclCollAllGatherV, .dtype = fcclUint8, .count = count});
  });
}

TEST_P(UnevenCollectives, take_a_mailbox_in_which_the_counts_find_no_room) {
  const Setting mailbox("FCCL_MAILBOX_BYTES", "64");
  run_ranks({GetParam().as, 5}, [](const Seat& seat) {
    const Comm comm(seat);
    for (const size_t count : {0, 1, 7})
      try_every_pattern(seat, comm, {.collective = fcclCollAlltoAllV, .dtype = fcclInt8, .count = count});
  });
}

TEST_P(UnevenCollectives, have_sums_of_every_type_and_operator_in_the_written_order) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    int iteration = 0;
    for (const auto& [dtype, op] : every_reduction())
      for (const size_t count : {5, 3001}) {
        ++iteration;
        EXPECT_EQ(try_collective({.collective = fcclCollReduceScatterV,
                                  .dtype = dtype,
                                  .count = count,
                                  .op = op,
                                  .in_place = iteration % 2 == 0,
                                  .iteration = iteration,
                                  .shares = kEveryShares[iteration % kEveryShares.size()]},
                                 seat.rank, seat.ranks, comm),
                  "");
      }
  });
}

TEST_P(UnevenCollectives, on_a_stream_need_their_arrays_only_until_the_call_returns) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    fcclStream_t stream = nullptr;
    ASSERT_TRUE(succeeded(fcclStreamCreate(&stream)));
    std::vector<std::unique_ptr<Trial>> trials;
    for (int i = 0; i < 30; ++i) {
      trials.push_back(std::make_unique<Trial>(Recipe{.collective = kUneven[i % 3],
                                                      .dtype = fcclInt32,
                                                      .count = i % 2 == 0 ? size_t{20} : size_t{30'000},
                                                      .iteration = i,
                                                      .is_displaced = i % 4 == 0},
                                               seat.rank, seat.ranks));
      EXPECT_TRUE(succeeded(trials.back()->issue(comm, stream)));
    }
    EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
    for (const auto& trial : trials) EXPECT_EQ(trial->fault(), "");
    EXPECT_TRUE(succeeded(fcclStreamDestroy(stream)));
  });
}

INSTANTIATE_TEST_SUITE_P(As, UnevenCollectives, ::testing::ValuesIn(sizes_after_every_change(1, 5)), name_of_size);
INSTANTIATE_TEST_SUITE_P(LongAs, UnevenCollectives, ::testing::ValuesIn(other_sizes(1, 5)), name_of_size);

}  // namespace
}  // namespace fccl::core::testing
