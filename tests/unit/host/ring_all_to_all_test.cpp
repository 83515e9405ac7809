// Tests the ring of AlltoAll. All ranks are in one process; the test resumes each by hand.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "host/lane.h"
#include "host/phases.h"
#include "host/task.h"
#include "unit/host/outcomes.h"

namespace fccl::core {
namespace {

constexpr int kRanks = 3;

class RingAllToAll : public ::testing::Test {
 protected:
  RingAllToAll() {
    for (int rank = 0; rank < kRanks; ++rank)
      lanes.push_back(std::make_unique<Lane>(segment, kPairLane, rank, std::vector{0, 1, 2}, 1));
  }

  static std::byte input(int rank, size_t index, int iteration) {
    return std::byte(1 + (rank * 101 + index * 7 + static_cast<size_t>(iteration) * 13) % 251);
  }

  void start(int rank, size_t count, int iteration) {
    std::vector<std::byte>& send = sends[rank];
    send.resize(kRanks * count);
    for (size_t i = 0; i < send.size(); ++i) send[i] = input(rank, i, iteration);
    results[rank].assign(kRanks * count, std::byte{0});
    tasks[rank] = {{{fcclCollAlltoAll, fcclInt8, ReduceOp::sum, -1, count}, send.data(), results[rank].data()},
                   static_cast<uint64_t>(iteration)};
    phases[rank].end();
    phases[rank] = enter(lanes[rank]->frame, *lanes[rank], tasks[rank]);
    ended[rank] = false;
  }
  // Resumes the rank until it waits for another one or has ended.
  void go_on(int rank) {
    const auto may_go_on = [&] { return !phases[rank].awaited().where || phases[rank].awaited().reached(); };
    while (!ended[rank] && may_go_on())
      ended[rank] = phases[rank].resume() && !starts_next(phases[rank], *lanes[rank], tasks[rank]);
  }
  void finish() {
    for (int turn = 0; turn < 1000; ++turn) go_on(turn % kRanks);
    EXPECT_EQ(ended, (std::array{true, true, true}));
  }
  void expect_results(size_t count, int iteration) const {
    for (int rank = 0; rank < kRanks; ++rank)
      for (int from = 0; from < kRanks; ++from)
        for (size_t i = 0; i < count; ++i)
          ASSERT_EQ(results[rank][from * count + i], input(from, rank * count + i, iteration))
              << "byte " << i << " from rank " << from << " on rank " << rank;
  }

  const SegmentShape shape{kRanks, 64, 64};
  std::shared_ptr<Segment> segment = *Segment::map(*Segment::make(shape), shape);
  std::vector<std::unique_ptr<Lane>> lanes;
  std::array<std::vector<std::byte>, kRanks> sends, results;
  std::array<Phase, kRanks> phases;
  std::array<Task, kRanks> tasks;
  std::array<bool, kRanks> ended{};
};

TEST_F(RingAllToAll, brings_every_rank_its_block_of_every_rank_through_slots_of_a_line) {
  segment->initialise(1);
  int iteration = 0;
  for (const size_t count : {1, 63, 64, 65, 128, 1001}) {
    ++iteration;
    for (int rank = 0; rank < kRanks; ++rank) start(rank, count, iteration);
    finish();
    expect_results(count, iteration);
  }
}

TEST_F(RingAllToAll, is_right_however_far_one_rank_runs_ahead) {
  segment->initialise(1);
  for (int rank = 0; rank < kRanks; ++rank) start(rank, 500, 1);
  for (int turn = 0; turn < 100; ++turn) {
    for (int i = 0; i < 5; ++i) go_on(2);
    go_on(turn % 2);
  }
  finish();
  expect_results(500, 1);
}

TEST_F(RingAllToAll, waits_for_the_slice_of_a_peer_that_has_not_put_it) {
  segment->initialise(1);
  for (int rank = 0; rank < kRanks; ++rank) start(rank, 100, 1);
  // All ranks enter in this order with their first slices, so only rank 1 does not know yet that it may put the second one.
  for (const int rank : {0, 1, 2, 0}) go_on(rank);
  EXPECT_EQ(phases[0].awaited().where, &segment->board(1, kPairLane).published.value);
  EXPECT_EQ(results[0][100], input(1, 0, 1));
  EXPECT_EQ(results[0][164], std::byte{0});
  finish();
  expect_results(100, 1);
}

TEST_F(RingAllToAll, ends_on_every_rank_where_one_has_another_count) {
  segment->initialise(1);
  for (int rank = 0; rank < kRanks; ++rank) start(rank, rank == 1 ? 101 : 100, 1);
  finish();
  EXPECT_EQ(differing_rank(phases[0].outcome()), 1);
  EXPECT_EQ(differing_rank(phases[2].outcome()), 1);
  EXPECT_FALSE(is_done(phases[1].outcome()));
}

}  // namespace
}  // namespace fccl::core
