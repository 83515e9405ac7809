// Many calls after one another without a pause: nothing of an earlier call may show in a later one.
#include <memory>
#include <random>

#include "processes/size.h"
#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

class Sequences : public ::testing::TestWithParam<Size> {};

TEST_P(Sequences, of_one_collective_show_no_stale_bytes) {
  const Setting slots("FCCL_SLOT_BYTES", "256");
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    for (int collective = 0; collective < fcclCollSend; ++collective)
      for (const size_t count : {2, 300})
        for (int iteration = 0; iteration < 50; ++iteration)
          EXPECT_EQ(try_collective({.collective = static_cast<fcclColl_t>(collective),
                                    .dtype = fcclFloat32,
                                    .count = collective == fcclCollBarrier ? 0 : count,
                                    .root = iteration % seat.ranks,
                                    .iteration = iteration},
                                   seat.rank, seat.ranks, comm),
                    "");
  });
}

// Nothing between the calls: all buffers are made before and looked at behind, so that ranks run apart as far as they may.
TEST_P(Sequences, issued_back_to_back_give_every_call_its_own_result) {
  const Setting slots("FCCL_SLOT_BYTES", "256");
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    std::mt19937_64 generator(7);
    for (int batch = 0; batch < 4; ++batch) {
      std::vector<std::unique_ptr<Trial>> trials;
      for (int i = 0; i < 60; ++i)
        trials.push_back(
            std::make_unique<Trial>(random_recipe(generator, seat.ranks, 3000, batch * 60 + i), seat.rank, seat.ranks));
      for (const auto& trial : trials) EXPECT_TRUE(succeeded(trial->issue(comm)));
      for (const auto& trial : trials) EXPECT_EQ(trial->fault(), "");
    }
  });
}

TEST_P(Sequences, of_random_calls_are_right) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    std::mt19937_64 generator(seat.ranks);
    for (int iteration = 0; iteration < 60; ++iteration)
      EXPECT_EQ(try_collective(random_recipe(generator, seat.ranks, 600'000, iteration), seat.rank, seat.ranks, comm), "");
  });
}

INSTANTIATE_TEST_SUITE_P(As, Sequences, ::testing::ValuesIn(sizes_after_every_change(1, 5)), name_of_size);
INSTANTIATE_TEST_SUITE_P(LongAs, Sequences, ::testing::ValuesIn(other_sizes(1, 5)), name_of_size);

// One segment, many ranks: the slots are small there, and far more ranks than cores wait for each other.
class ManyRanks : public ::testing::TestWithParam<Size> {};

TEST_P(ManyRanks, run_random_calls_right) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    std::mt19937_64 generator(seat.ranks);
    for (int iteration = 0; iteration < 16; ++iteration)
      EXPECT_EQ(try_collective(random_recipe(generator, seat.ranks, 50'000, iteration), seat.rank, seat.ranks, comm), "");
  });
}

INSTANTIATE_TEST_SUITE_P(As, ManyRanks, ::testing::ValuesIn([] {
                           std::vector<Size> all;
                           for (const RanksAs kind : every_kind())
                             for (const int ranks : {8, 9, 16}) all.push_back({kind, ranks});
                           return all;
                         }()),
                         name_of_size);

}  // namespace
}  // namespace fccl::core::testing
