// Collectives that reduce, each result compared to the bit with the written order of a sum: AllReduce, Reduce, ReduceScatter.
#include "processes/size.h"
#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

class Reductions : public ::testing::TestWithParam<Size> {};

TEST_P(Reductions, have_the_written_value_for_every_type_and_operator) {
  const Setting slots("FCCL_SLOT_BYTES", "1024");
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    int iteration = 0;
    for (const fcclColl_t collective : kEveryReducer)
      for (const auto& [dtype, op] : every_reduction())
        for (const size_t count : {3, 700, 2001}) {
          ++iteration;
          EXPECT_EQ(try_collective({.collective = collective,
                                    .dtype = dtype,
                                    .count = count,
                                    .op = op,
                                    .root = iteration % seat.ranks,
                                    .in_place = iteration % 3 == 0,
                                    .iteration = iteration},
                                   seat.rank, seat.ranks, comm),
                    "");
        }
  });
}

TEST_P(Reductions, have_the_written_value_for_every_count_around_the_edges_of_the_mailbox_and_of_small_slots) {
  const Setting mailbox("FCCL_MAILBOX_BYTES", "128");
  const Setting slots("FCCL_SLOT_BYTES", "192");
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    int iteration = 0;
    for (const fcclColl_t collective : kEveryReducer)
      for (const fcclDataType_t dtype : {fcclBfloat16, fcclFloat32, fcclInt64}) {
        std::vector<size_t> counts{0, 1, 3};
        for (const size_t bytes : {56, 128, 192, 384, 960, 192 * seat.ranks, 984 * seat.ranks})
          add_counts_around(counts, bytes, size_of(dtype), seat.ranks);
        for (size_t i = 0; i < counts.size(); ++i)
          EXPECT_EQ(try_collective({.collective = collective,
                                    .dtype = dtype,
                                    .count = counts[i],
                                    .root = ++iteration % seat.ranks,
                                    .in_place = (i + size_of(dtype) / 4) % 2 == 0,
                                    .iteration = iteration},
                                   seat.rank, seat.ranks, comm),
                    "");
      }
  });
}

TEST_P(Reductions, have_the_written_value_around_the_edges_of_the_default_mailbox_and_slots) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    std::vector<size_t> counts{0, 1, 3};
    for (const size_t bytes : {size_t{56}, size_t{4096}, size_t{256} << 10, size_t{768} << 10})
      add_counts_around(counts, bytes, sizeof(float), seat.ranks);
    int iteration = 0;
    for (const fcclColl_t collective : kEveryReducer)
      for (const size_t count : counts)
        EXPECT_EQ(try_collective({.collective = collective,
                                  .dtype = fcclFloat32,
                                  .count = count,
                                  .op = ReduceOp::avg,
                                  .root = ++iteration % seat.ranks,
                                  .in_place = count % 2 == 0,
                                  .iteration = iteration},
                                 seat.rank, seat.ranks, comm),
                  "");
  });
}

TEST_P(Reductions, take_buffers_of_any_alignment) {
  const Setting slots("FCCL_SLOT_BYTES", "1024");
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    for (const fcclColl_t collective : kEveryReducer)
      for (const fcclDataType_t dtype : {fcclInt8, fcclFloat16, fcclBfloat16, fcclFloat32, fcclFloat64})
        for (const size_t misalignment : {1, 3, 15})
          for (const size_t count : {3, 1001})
            EXPECT_EQ(try_collective({.collective = collective,
                                      .dtype = dtype,
                                      .count = count,
                                      .root = seat.ranks / 2,
                                      .in_place = misalignment == 3,
                                      .misalignment = misalignment},
                                     seat.rank, seat.ranks, comm),
                      "");
  });
}

TEST_P(Reductions, reach_every_root) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    for (int root = 0; root < seat.ranks; ++root)
      for (const size_t count : {3, 40'001})
        for (const bool in_place : {false, true})
          EXPECT_EQ(try_collective({.collective = fcclCollReduce,
                                    .dtype = fcclFloat32,
                                    .count = count,
                                    .root = root,
                                    .in_place = in_place,
                                    .iteration = root},
                                   seat.rank, seat.ranks, comm),
                    "");
  });
}

INSTANTIATE_TEST_SUITE_P(As, Reductions, ::testing::ValuesIn(sizes_after_every_change(1, 5)), name_of_size);
INSTANTIATE_TEST_SUITE_P(LongAs, Reductions, ::testing::ValuesIn(other_sizes(1, 5)), name_of_size);

}  // namespace
}  // namespace fccl::core::testing
