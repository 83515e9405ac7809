// Collectives that move bytes, as they come and through small slots: AllGather, Broadcast, Gather,
// Scatter, AlltoAll, AllGatherV, AlltoAllV, Barrier.
#include <thread>

#include "processes/size.h"
#include "processes/trial.h"

namespace fccl::core::testing {
namespace {

// Tries a recipe with every root that matters.
void try_with_every_root(const Seat& seat, fcclComm_t comm, Recipe recipe) {
  const int roots = has_root(recipe.collective) ? seat.ranks : 1;
  for (recipe.root = 0; recipe.root < roots; ++recipe.root) EXPECT_EQ(try_collective(recipe, seat.rank, seat.ranks, comm), "");
}

std::vector<size_t> counts_for(size_t mailbox, size_t slot, size_t size, int ranks) {
  std::vector<size_t> counts{0, 1, 3};
  for (const size_t bytes : {size_t{56}, mailbox, slot, 2 * slot, 5 * slot + 24}) add_counts_around(counts, bytes, size, ranks);
  return counts;
}

// AllGathers around the sizes at which they begin to be read out of the peers' memory, are read in more than one piece, and go
// by the ring again if they are not in place.
void try_all_gathers_of_attach(const Seat& seat, const Comm& comm) {
  int iteration = 0;
  std::vector<size_t> counts{(size_t{5} << 18) + 24};
  for (const size_t bytes : {size_t{8} << 10, size_t{1} << 20}) add_counts_around(counts, bytes, 1, 1);
  add_counts_around(counts, (size_t{4} << 20) / seat.ranks, 1, 1);
  for (const size_t count : counts)
    for (const bool in_place : {false, true})
      EXPECT_EQ(try_collective({.collective = fcclCollAllGather,
                                .dtype = fcclUint8,
                                .count = count,
                                .in_place = in_place,
                                .iteration = ++iteration},
                               seat.rank, seat.ranks, comm),
                "");
}

void try_all_to_alls_of_attach(const Seat& seat, const Comm& comm) {
  int iteration = 0;
  std::vector<size_t> counts;
  for (const size_t bytes : {size_t{32} << 10, size_t{1} << 20, (size_t{16} << 20) / seat.ranks})
    add_counts_around(counts, bytes, 1, 1);
  for (const size_t count : counts)
    EXPECT_EQ(try_collective({.collective = fcclCollAlltoAll, .dtype = fcclUint8, .count = count, .iteration = ++iteration},
                             seat.rank, seat.ranks, comm),
              "");
}

void try_moves_of_attach(const Seat& seat) {
  const Comm comm(seat);
  try_all_gathers_of_attach(seat, comm);
  try_all_to_alls_of_attach(seat, comm);
}

class ByteCollectives : public ::testing::TestWithParam<Size> {};

TEST_P(ByteCollectives, deliver_every_count_around_the_edges_of_the_mailbox_and_of_small_slots) {
  const Setting mailbox("FCCL_MAILBOX_BYTES", "128");
  const Setting slots("FCCL_SLOT_BYTES", "192");
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    int iteration = 0;
    for (const fcclColl_t collective : kEveryMover)
      for (const fcclDataType_t dtype : {fcclUint8, fcclInt16, fcclFloat64})
        for (const size_t count : counts_for(128, 192, size_of(dtype), seat.ranks))
          for (const bool in_place : {false, true})
            try_with_every_root(seat, comm,
                                {.collective = collective,
                                 .dtype = dtype,
                                 .count = count,
                                 .in_place = in_place,
                                 .misalignment = count % 2,
                                 .iteration = ++iteration});
  });
}

TEST_P(ByteCollectives, deliver_every_count_around_the_edges_of_the_default_mailbox_and_slots) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    int iteration = 0;
    for (const fcclColl_t collective : kEveryMover)
      for (const size_t count : counts_for(4096, 256 * 1024, sizeof(float), seat.ranks))
        try_with_every_root(seat, comm,
                            {.collective = collective,
                             .dtype = fcclFloat32,
                             .count = count,
                             .in_place = count % 2 == 0,
                             .iteration = ++iteration});
  });
}

TEST_P(ByteCollectives, deliver_every_count_around_the_edges_of_cross_memory_attach) {
  const Setting attach("FCCL_CROSS_MEMORY_ATTACH", "on");
  run_ranks(GetParam().launch(), try_moves_of_attach);
}

TEST_P(ByteCollectives, deliver_the_same_counts_without_cross_memory_attach) {
  const Setting attach("FCCL_CROSS_MEMORY_ATTACH", "off");
  run_ranks(GetParam().launch(), try_moves_of_attach);
}

TEST_P(ByteCollectives, move_every_type) {
  const Setting slots("FCCL_SLOT_BYTES", "4096");
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    for (const fcclColl_t collective : kEveryMover)
      for (int type = 0; type < fcclNumTypes; ++type)
        for (const size_t count : {3, 500, 5001})
          try_with_every_root(
              seat, comm,
              {.collective = collective, .dtype = static_cast<fcclDataType_t>(type), .count = count, .iteration = type});
  });
}

TEST_P(ByteCollectives, take_buffers_of_any_alignment) {
  const Setting slots("FCCL_SLOT_BYTES", "1024");
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    for (const fcclColl_t collective : kEveryMover)
      for (size_t misalignment = 1; misalignment < 16; misalignment += 2)
        for (const size_t count : {5, 333, 3001})
          try_with_every_root(seat, comm,
                              {.collective = collective,
                               .dtype = fcclInt32,
                               .count = count,
                               .in_place = count == 333,
                               .misalignment = misalignment,
                               .iteration = static_cast<int>(misalignment)});
  });
}

TEST_P(ByteCollectives, bcast_is_a_broadcast_in_place) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    for (const size_t count : {7, 100'001})
      for (int root = 0; root < seat.ranks; ++root) {
        std::vector<int32_t> values(count, seat.rank == root ? 100 + root : -1);
        EXPECT_TRUE(succeeded(fcclBcast(values.data(), count, fcclInt32, root, comm, nullptr)));
        EXPECT_EQ(values, std::vector<int32_t>(count, 100 + root));
      }
  });
}

TEST_P(ByteCollectives, a_barrier_returns_when_the_last_rank_has_called_it) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    for (int round = 0; round < 10; ++round) {
      const int late = round % seat.ranks;
      if (seat.rank == late) {
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
        seat.board.notes[round] = now_ns();
      }
      EXPECT_TRUE(succeeded(fcclBarrier(comm, nullptr)));
      EXPECT_NE(seat.board.notes[round], 0) << "rank " << late << " was not there yet in round " << round;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(As, ByteCollectives, ::testing::ValuesIn(sizes_after_every_change(1, 5)), name_of_size);
INSTANTIATE_TEST_SUITE_P(LongAs, ByteCollectives, ::testing::ValuesIn(other_sizes(1, 5)), name_of_size);

}  // namespace
}  // namespace fccl::core::testing
