// Reductions whose results are float32 while narrower floats are given, each compared to the bit with the written order.
#include <memory>

#include "processes/size.h"
#include "processes/test_stream.h"
#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

class TypedSums : public ::testing::TestWithParam<Size> {};

TEST_P(TypedSums, have_the_written_value_for_every_pair_and_operator) {
  const Setting slots("FCCL_SLOT_BYTES", "1024");
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    int iteration = 0;
    for (const fcclColl_t collective : kReducers)
      for (const auto& [dtype, op] : every_reduction())
        for (const size_t count : {0, 1, 3, 700, 2001}) {
          if (!may_widen(collective, dtype)) continue;
          ++iteration;
          EXPECT_EQ(try_collective({.collective = collective,
                                    .dtype = dtype,
                                    .count = count,
                                    .op = op,
                                    .root = iteration % seat.ranks,
                                    .misalignment = static_cast<size_t>(iteration % 3),
                                    .iteration = iteration,
                                    .widens = true},
                                   seat.rank, seat.ranks, comm),
                    "");
        }
  });
}

// The smallest slots that there are hold 16 elements of a result.
TEST_P(TypedSums, have_the_written_value_for_every_count_around_the_edges_of_the_mailbox_and_of_small_slots) {
  for (const char* slot_bytes : {"64", "192"}) {
    const Setting mailbox("FCCL_MAILBOX_BYTES", "128");
    const Setting slots("FCCL_SLOT_BYTES", slot_bytes);
    run_ranks(GetParam().launch(), [](const Seat& seat) {
      const Comm comm(seat);
      int iteration = 0;
      for (const fcclColl_t collective : kReducers)
        for (const fcclDataType_t dtype : {fcclBfloat16, fcclFloat8e4m3}) {
          std::vector<size_t> counts{0, 1, 3};
          for (const size_t bytes : {56, 64, 128, 192, 384, 192 * seat.ranks})
            add_counts_around(counts, bytes, size_of(dtype), seat.ranks);
          for (const size_t count : counts)
            EXPECT_EQ(try_collective({.collective = collective,
                                      .dtype = dtype,
                                      .count = count,
                                      .root = ++iteration % seat.ranks,
                                      .iteration = iteration,
                                      .widens = true},
                                     seat.rank, seat.ranks, comm),
                      "");
        }
    });
  }
}

TEST_P(TypedSums, have_the_written_value_around_the_edges_of_the_default_mailbox_and_slots) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    std::vector<size_t> counts{1};
    for (const size_t bytes : {size_t{56}, size_t{4096}, size_t{256} << 10, size_t{768} << 10})
      add_counts_around(counts, bytes, sizeof(uint16_t), seat.ranks);
    int iteration = 0;
    for (const fcclColl_t collective : kReducers)
      for (const size_t count : counts)
        EXPECT_EQ(try_collective({.collective = collective,
                                  .dtype = fcclBfloat16,
                                  .count = count,
                                  .op = ReduceOp::avg,
                                  .root = ++iteration % seat.ranks,
                                  .iteration = iteration,
                                  .widens = true},
                                 seat.rank, seat.ranks, comm),
                  "");
  });
}

TEST_P(TypedSums, on_streams_and_in_groups_are_those_of_blocking_calls) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const TestStream stream;
    std::vector<std::unique_ptr<Trial>> trials;
    for (int i = 0; i < 12; ++i) {
      const Recipe recipe{.collective = kReducers[i % 3],
                          .dtype = i % 2 == 0 ? fcclBfloat16 : fcclFloat16,
                          .count = i % 4 == 0 ? size_t{30'000} : size_t{20},
                          .root = i % seat.ranks,
                          .iteration = i,
                          .widens = true};
      trials.push_back(std::make_unique<Trial>(recipe, seat.rank, seat.ranks));
    }
    for (int i = 0; i < 6; ++i) EXPECT_TRUE(succeeded(trials[i]->issue(comm, stream)));
    EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
    EXPECT_TRUE(succeeded(fcclGroupStart()));
    for (int i = 6; i < 12; ++i) EXPECT_TRUE(succeeded(trials[i]->issue(comm)));
    EXPECT_TRUE(succeeded(fcclGroupEnd()));
    for (const auto& trial : trials) EXPECT_EQ(trial->fault(), "");
  });
}

INSTANTIATE_TEST_SUITE_P(As, TypedSums, ::testing::ValuesIn(sizes_after_every_change(1, 5)), name_of_size);
INSTANTIATE_TEST_SUITE_P(LongAs, TypedSums, ::testing::ValuesIn(other_sizes(1, 5)), name_of_size);

// A sum of 256 ones and a half in bfloat16, which has 8 bits of precision, loses the half; so does a sum over ranks.
TEST(TypedSum, keeps_what_the_plain_one_rounds_away) {
  run_ranks({RanksAs::threads, 2}, [](const Seat& seat) {
    const Comm comm(seat);
    constexpr uint16_t kBits[] = {0x4380, 0x3f00};  // 256 and 0.5
    const uint16_t mine = kBits[seat.rank];
    uint16_t rounded = 0;
    float whole = 0;
    EXPECT_TRUE(succeeded(fcclAllReduce(&mine, &rounded, 1, fcclBfloat16, fcclSum, comm, nullptr)));
    EXPECT_TRUE(succeeded(fcclAllReduceTyped(&mine, &whole, 1, fcclBfloat16, fcclFloat32, fcclSum, comm, nullptr)));
    EXPECT_EQ(rounded, 0x4380);
    EXPECT_EQ(whole, 256.5f);
  });
}

TEST(TypedSum, of_one_type_is_the_plain_call_also_in_place) {
  run_ranks({RanksAs::threads, 3}, [](const Seat& seat) {
    const Comm comm(seat);
    int32_t value = seat.rank + 1;
    EXPECT_TRUE(succeeded(fcclAllReduceTyped(&value, &value, 1, fcclInt32, fcclInt32, fcclSum, comm, nullptr)));
    EXPECT_EQ(value, 6);
    // Met by a plain call of another rank.
    int32_t again = seat.rank + 1, sum = -1;
    EXPECT_TRUE(succeeded(seat.rank == 0 ? fcclAllReduce(&again, &sum, 1, fcclInt32, fcclSum, comm, nullptr)
                                         : fcclAllReduceTyped(&again, &sum, 1, fcclInt32, fcclInt32, fcclSum, comm, nullptr)));
    EXPECT_EQ(sum, 6);
  });
}

// The size of a call is that of the larger buffer.
TEST(TypedSum, is_counted_by_its_results_where_these_are_more) {
  run_ranks({RanksAs::threads, 2}, [](const Seat& seat) {
    const Comm comm(seat);
    EXPECT_EQ(try_collective({.collective = fcclCollAllReduce, .dtype = fcclFloat8e5m2, .count = 100, .widens = true},
                             seat.rank, seat.ranks, comm),
              "");
    fcclCounter_t counter;
    EXPECT_TRUE(succeeded(fcclCommGetCounter(comm, fcclCollAllReduce, &counter)));
    EXPECT_EQ(counter.calls, 1U);
    EXPECT_EQ(counter.bytes, 400U);
  });
}

}  // namespace
}  // namespace fccl::core::testing
