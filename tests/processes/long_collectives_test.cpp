// All collectives over more ranks, types, operators, counts and sizes than there is time for in the quick tests.
#include <iterator>
#include <memory>
#include <random>

#include "processes/size.h"
#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

void try_all(const Seat& seat, const std::vector<Recipe>& recipes) {
  const Comm comm(seat);
  for (const Recipe& recipe : recipes) EXPECT_EQ(try_collective(recipe, seat.rank, seat.ranks, comm), "");
}

// Recipes that differ from those before them in root, placement, alignment and data.
void vary(std::vector<Recipe>& recipes, int ranks) {
  int iteration = 0;
  for (Recipe& recipe : recipes) {
    recipe.iteration = ++iteration;
    recipe.root = iteration % ranks;
    recipe.in_place = iteration % 3 == 0;
    recipe.misalignment = iteration % 4 == 0 ? iteration % 16 : 0;
  }
}

class LongCollectives : public ::testing::TestWithParam<Size> {};

// With a mailbox of 64 bytes and slots of 128 all ways lie within these counts. Each collective, type and operator gets every
// 34th count, and threads others than processes, so that each type and each operator gets them all.
TEST_P(LongCollectives, reduce_every_type_by_every_operator_for_every_count_up_to_257) {
  const Setting mailbox("FCCL_MAILBOX_BYTES", "64");
  const Setting slots("FCCL_SLOT_BYTES", "128");
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    std::vector<Recipe> recipes;
    size_t first = GetParam().as == RanksAs::threads ? 0 : 17;
    for (const auto& [dtype, op] : every_reduction())
      for (const fcclColl_t collective : kReducers)
        for (size_t count = first++ % 34; count <= 257; count += 34)
          recipes.push_back({.collective = collective, .dtype = dtype, .count = count, .op = op});
    vary(recipes, seat.ranks);
    try_all(seat, recipes);
  });
}

TEST_P(LongCollectives, move_every_count_up_to_257) {
  const Setting mailbox("FCCL_MAILBOX_BYTES", "64");
  const Setting slots("FCCL_SLOT_BYTES", "128");
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    std::vector<Recipe> recipes;
    for (const fcclColl_t collective : kMovers)
      for (size_t count = 0; count <= 257; ++count)
        recipes.push_back(
            {.collective = collective, .dtype = static_cast<fcclDataType_t>(count % fcclNumTypes), .count = count});
    vary(recipes, seat.ranks);
    try_all(seat, recipes);
  });
}

TEST_P(LongCollectives, are_right_around_the_edges_of_the_default_mailbox_and_slots) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    std::vector<Recipe> recipes;
    size_t next = seat.ranks;
    for (const size_t bytes : {size_t{56}, size_t{4096}, size_t{256} << 10, size_t{512} << 10})
      for (const size_t size : {1, 2, 4, 8}) {
        std::vector<size_t> counts;
        add_counts_around(counts, bytes, size, seat.ranks);
        for (const size_t count : counts) {
          do ++next;
          while (size_of(every_reduction()[next % every_reduction().size()].dtype) != size);
          const auto& [dtype, op] = every_reduction()[next % every_reduction().size()];
          recipes.push_back({.collective = kReducers[next % std::size(kReducers)], .dtype = dtype, .count = count, .op = op});
          recipes.push_back({.collective = kMovers[next % std::size(kMovers)], .dtype = dtype, .count = count});
        }
      }
    vary(recipes, seat.ranks);
    try_all(seat, recipes);
  });
}

TEST_P(LongCollectives, of_both_lanes_at_once_keep_their_results_apart) {
  const Setting slots("FCCL_SLOT_BYTES", "1024");
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    fcclStream_t streams[2] = {};
    for (fcclStream_t& stream : streams) EXPECT_TRUE(succeeded(fcclStreamCreate(&stream)));
    std::mt19937_64 generator(seat.ranks);
    for (int batch = 0; batch < 5; ++batch) {
      std::vector<std::unique_ptr<Trial>> trials;
      for (int i = 0; i < 40; ++i) {
        const Recipe recipe = random_recipe(generator, seat.ranks, 6000, batch * 40 + i);
        trials.push_back(std::make_unique<Trial>(recipe, seat.rank, seat.ranks));
        EXPECT_TRUE(succeeded(trials.back()->issue(comm, streams[reduces(recipe.collective) ? 1 : 0])));
      }
      for (fcclStream_t stream : streams) EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
      for (const auto& trial : trials) EXPECT_EQ(trial->fault(), "");
    }
    for (fcclStream_t stream : streams) EXPECT_TRUE(succeeded(fcclStreamDestroy(stream)));
  });
}

INSTANTIATE_TEST_SUITE_P(As, LongCollectives, ::testing::ValuesIn(sizes(1, 5)), name_of_size);
INSTANTIATE_TEST_SUITE_P(Campaign, LongCollectives, ::testing::ValuesIn(sizes(6, 9)), name_of_size);

class LongBuffers : public ::testing::TestWithParam<Size> {};

TEST_P(LongBuffers, of_millions_of_elements_are_moved_and_reduced_right) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    std::vector<Recipe> recipes;
    for (const size_t count : {1'000'003, 2'500'000}) {
      for (const fcclColl_t collective : kMovers)
        recipes.push_back({.collective = collective, .dtype = fcclInt16, .count = count});
      for (const fcclColl_t collective : kReducers)
        for (const fcclDataType_t dtype : {fcclBfloat16, fcclFloat32})
          recipes.push_back({.collective = collective, .dtype = dtype, .count = count});
    }
    vary(recipes, seat.ranks);
    try_all(seat, recipes);
  });
}

INSTANTIATE_TEST_SUITE_P(As, LongBuffers, ::testing::ValuesIn(sizes(1, 5)), name_of_size);

}  // namespace
}  // namespace fccl::core::testing
