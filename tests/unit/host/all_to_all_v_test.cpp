// Tests AlltoAllV within a host: blocks that fit into boxes, calls that continue by the ring, and counts that differ. All ranks
// are in one process; the test resumes each by hand.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <vector>

#include "host/lane.h"
#include "host/path.h"
#include "host/phases.h"
#include "host/task.h"
#include "unit/host/outcomes.h"

namespace fccl::core {
namespace {

constexpr int kHere = 3;

class UnevenExchange : public ::testing::Test {
 protected:
  UnevenExchange() { start_over(); }

  // Makes new lanes, because a lane cannot run another phase after one that did not end well. Ends the phases first, because
  // they live in the memory of their lanes.
  void start_over() {
    for (Phase& phase : phases) phase.end();
    lanes.clear();
    segment->initialise(1);
    for (int rank = 0; rank < kHere; ++rank)
      lanes.push_back(std::make_unique<Lane>(segment, kPairLane, rank, std::vector{10, 11, 12}, 1));
  }

  static std::byte value(int from, int to, size_t index) {
    return std::byte(1 + (static_cast<size_t>(from * 101 + to * 37) + index * 7) % 251);
  }

  // Gives the bytes that one rank sends to another, or that the other expects.
  using CountOf = std::function<size_t(int from, int to)>;

  void start(Path path, const CountOf& sent, const CountOf& expected) {
    for (int rank = 0; rank < kHere; ++rank) {
      std::vector<ByteRange> given, taken;
      sends[rank].clear();
      size_t size = 0;
      for (int peer = 0; peer < kHere; ++peer) {
        given.push_back({sends[rank].size(), sent(rank, peer)});
        for (size_t i = 0; i < given.back().bytes; ++i) sends[rank].push_back(value(rank, peer, i));
        taken.push_back({size, expected(peer, rank)});
        size += taken.back().bytes;
      }
      blocks[rank].input.set(given);
      blocks[rank].output.set(taken);
      results[rank].assign(size, std::byte{0});
      go_on_by(rank, path);
    }
  }
  void go_on_by(int rank, Path path) {
    Lane& lane = *lanes[rank];
    phases[rank].end();
    phases[rank] = path == Path::mailbox ? mailbox_all_to_all_v(lane.frame, lane, {}, task_of(rank))
                                         : enter(lane.frame, lane, task_of(rank));
    ended[rank] = false;
  }
  Task task_of(int rank) {
    return {{{fcclCollAlltoAllV, fcclInt8}, sends[rank].data(), results[rank].data(), {}, &blocks[rank]}, 7};
  }
  // Resumes ranks until each has ended or waits for one that has.
  void finish() {
    for (int turn = 0; turn < 3000; ++turn) {
      const int rank = turn % kHere;
      while (!ended[rank] && (!phases[rank].awaited().where || phases[rank].awaited().reached()))
        ended[rank] = phases[rank].resume() && !starts_next(phases[rank], *lanes[rank], task_of(rank));
    }
  }
  void expect_results(const CountOf& sent) const {
    for (int rank = 0; rank < kHere; ++rank) {
      ASSERT_TRUE(ended[rank] && is_done(phases[rank].outcome())) << rank;
      for (int from = 0; from < kHere; ++from)
        for (size_t i = 0; i < sent(from, rank); ++i)
          ASSERT_EQ(results[rank][blocks[rank].output.layout().offset(from) + i], value(from, rank, i))
              << "byte " << i << " from rank " << from << " on rank " << rank;
    }
  }

  const SegmentShape shape{kHere, 128, 64};
  std::shared_ptr<Segment> segment = *Segment::map(*Segment::make(shape), shape);
  std::vector<std::unique_ptr<Lane>> lanes;
  std::array<UnevenBlocks, kHere> blocks;
  std::array<std::vector<std::byte>, kHere> sends, results;
  std::array<Phase, kHere> phases;
  std::array<bool, kHere> ended{};
};

// The counts take 48 bytes of a box and leave 80.
size_t all_that_fits(int from, int to) { return from == to ? 500 : static_cast<size_t>(from == 0 ? 40 : to); }
size_t one_byte_more(int from, int to) { return all_that_fits(from, to) + (from == 0 && to == 2 ? 1 : 0); }
size_t long_blocks(int from, int to) { return from == 1 ? 1000 : static_cast<size_t>(60 * to); }

TEST_F(UnevenExchange, goes_beside_the_words_if_all_that_each_rank_has_for_others_fits) {
  start(Path::mailbox, all_that_fits, all_that_fits);
  finish();
  expect_results(all_that_fits);
}

TEST_F(UnevenExchange, is_closed_to_the_mailbox_on_every_rank_if_one_has_a_byte_too_many) {
  start(Path::mailbox, one_byte_more, one_byte_more);
  finish();
  for (const Phase& phase : phases) EXPECT_TRUE(std::holds_alternative<PastMailbox>(phase.outcome()));
  for (int rank = 0; rank < kHere; ++rank) go_on_by(rank, Path::ring);
  finish();
  expect_results(one_byte_more);
}

TEST_F(UnevenExchange, has_as_many_slices_on_every_rank_as_the_longest_block_of_any_needs) {
  start(Path::ring, long_blocks, long_blocks);
  finish();
  expect_results(long_blocks);
  EXPECT_EQ(lanes[0]->slices(), 1U + 16);  // the counts, then 1000 bytes through slots of 64
  for (const auto& lane : lanes) EXPECT_EQ(lane->slices(), lanes[0]->slices());
}

// Rank 2 sends rank 0 one byte more or less than rank 0 expects.
void expect_both_to_find_out(const Phase& sender, const Phase& receiver, size_t sent, size_t expected) {
  EXPECT_EQ(differing_rank(sender.outcome()), 10);
  EXPECT_TRUE(std::holds_alternative<OtherCounts>(sender.outcome()));
  EXPECT_EQ(counts_of(sender.outcome()).expects, expected);
  EXPECT_EQ(differing_rank(receiver.outcome()), 12);
  EXPECT_TRUE(std::holds_alternative<OtherCounts>(receiver.outcome()));
  EXPECT_EQ(counts_of(receiver.outcome()).sends, sent);
}

TEST_F(UnevenExchange, of_other_counts_than_a_peer_has_ends_on_both_sides_with_its_counts) {
  for (const Path path : {Path::mailbox, Path::ring})
    for (const size_t sent : {4, 6}) {
      const auto fives = [](int, int) { return size_t{5}; };
      start(path, [&](int from, int to) { return from == 2 && to == 0 ? sent : size_t{5}; }, fives);
      finish();
      ASSERT_TRUE(ended[0] && ended[2]);
      expect_both_to_find_out(phases[2], phases[0], sent, 5);
      for (const int rank : {0, 2})
        EXPECT_EQ(results[rank], std::vector(15, std::byte{0})) << "data came before the counts agreed";
      start_over();
    }
}

}  // namespace
}  // namespace fccl::core
