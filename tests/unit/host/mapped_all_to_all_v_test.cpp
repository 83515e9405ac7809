// Tests AlltoAllV on memory that peers map: when a call takes this path, and what ranks tell each other. All ranks are in one
// process; the test resumes each by hand.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "arena/arena.h"
#include "host/lane.h"
#include "host/path.h"
#include "host/phases.h"
#include "host/task.h"
#include "segment/mapped_peers.h"
#include "unit/host/outcomes.h"

namespace fccl::core {
namespace {

constexpr int kExchanging = 3;
constexpr size_t kGap = 13;

size_t uneven_blocks(int from, int to) { return from == 1 ? 2'500'000 : static_cast<size_t>(from * 5000 + to * 70); }
size_t one_has_all(int from, int to) { return from == 2 && to == 0 ? 100'000 : 0; }

class MappedExchange : public ::testing::Test {
 public:
  ~MappedExchange() override {
    for (Phase& phase : phases) phase.end();
    free_inputs();
  }

 protected:
  using CountOf = std::function<size_t(int from, int to)>;

  MappedExchange() {
    for (int rank = 0; rank < kExchanging; ++rank) {
      lanes.push_back(std::make_unique<Lane>(segment, kPairLane, rank, std::vector{10, 11, 12}, 1));
      lanes[rank]->reach.mapped_peers = std::make_unique<MappedPeers>(segment, rank, std::vector<int>(kExchanging, getpid()));
    }
  }

  std::byte value(int from, int to, size_t index) const {
    return std::byte(1 + (static_cast<size_t>(from * 101 + to * 37) + index * 7 + number * 11) % 250);
  }

  // Lays out blocks in reverse order, with gaps. Ranks in `own` use private memory; a rank without data has no buffer.
  void start(const CountOf& count, std::array<bool, kExchanging> own = {}) {
    free_inputs();
    ++number;
    for (int rank = 0; rank < kExchanging; ++rank) {
      std::array<ByteRange, kExchanging> given{}, taken{};
      size_t size = 0, expected = 0;
      for (int peer = kExchanging - 1; peer >= 0; --peer) {
        given[peer] = {size, count(rank, peer)};
        if (given[peer].bytes != 0) size += given[peer].bytes + kGap;
        taken[peer] = {expected, count(peer, rank)};
        expected += taken[peer].bytes;
      }
      blocks[rank].input.set(given);
      blocks[rank].output.set(taken);
      privates[rank].assign(own[rank] ? size : 0, std::byte{0});
      inputs[rank] = own[rank] ? privates[rank].data() : static_cast<std::byte*>(*process_arena().allocate(size));
      for (int peer = 0; peer < kExchanging; ++peer)
        for (size_t i = 0; i < given[peer].bytes; ++i) inputs[rank][given[peer].offset + i] = value(rank, peer, i);
      results[rank].assign(expected, std::byte{0});
      is_private[rank] = own[rank];
      phases[rank].end();
      phases[rank] = enter(lanes[rank]->frame, *lanes[rank], task_of(rank));
      ended[rank] = false;
    }
  }
  Task task_of(int rank) {
    return {{{fcclCollAlltoAllV, fcclInt8}, inputs[rank], results[rank].data(), {}, &blocks[rank]}, number};
  }
  void finish() {
    for (int turn = 0; turn < 10'000; ++turn) go_on(turn % kExchanging);
  }
  void go_on(int rank) {
    while (!ended[rank] && (!phases[rank].awaited().where || phases[rank].awaited().reached())) {
      if (!phases[rank].resume()) continue;
      const Path path = next_route(phases[rank].outcome()).path;
      if (starts_next(phases[rank], *lanes[rank], task_of(rank)))
        paths[rank] = path;
      else
        ended[rank] = true;
    }
  }
  void expect_results(const CountOf& count, Path path) const {
    for (int rank = 0; rank < kExchanging; ++rank) {
      ASSERT_TRUE(ended[rank] && is_done(phases[rank].outcome())) << rank;
      EXPECT_EQ(paths[rank], path) << rank;
      for (int from = 0; from < kExchanging; ++from)
        for (size_t i = 0; i < count(from, rank); ++i)
          ASSERT_EQ(results[rank][blocks[rank].output.layout().offset(from) + i], value(from, rank, i))
              << "byte " << i << " from rank " << from << " on rank " << rank;
    }
  }
  // Runs a first call, in which ranks only map each other's arenas.
  void meet() {
    start(one_has_all);
    finish();
    expect_results(one_has_all, Path::ring);
  }
  void free_inputs() {
    for (int rank = 0; rank < kExchanging; ++rank)
      if (!is_private[rank]) EXPECT_TRUE(process_arena().free(std::exchange(inputs[rank], nullptr)));
  }

  const SegmentShape shape{kExchanging, 128, 8192};
  std::shared_ptr<Segment> segment = *Segment::map(*Segment::make(shape), shape);
  std::vector<std::unique_ptr<Lane>> lanes;
  std::array<UnevenBlocks, kExchanging> blocks;
  std::array<std::byte*, kExchanging> inputs{};
  std::array<std::vector<std::byte>, kExchanging> privates, results;
  std::array<bool, kExchanging> is_private{}, ended{};
  std::array<Path, kExchanging> paths{};
  std::array<Phase, kExchanging> phases;
  uint64_t number = 0;
};

TEST_F(MappedExchange, reads_blocks_where_they_lie_with_gaps_and_in_any_order) {
  meet();
  for (int i = 0; i < 3; ++i) {
    start(uneven_blocks);
    finish();
    expect_results(uneven_blocks, Path::mapped);
  }
  for (const auto& lane : lanes) EXPECT_EQ(lane->slices(), lanes[0]->slices());
}

TEST_F(MappedExchange, of_a_rank_that_has_nothing_and_no_buffer_is_mapped_like_any_other) {
  meet();
  start(one_has_all);
  ASSERT_EQ(inputs[0], nullptr);
  finish();
  expect_results(one_has_all, Path::mapped);
}

TEST_F(MappedExchange, goes_through_slots_if_one_rank_gives_private_memory) {
  meet();
  start(uneven_blocks, {false, false, true});
  finish();
  expect_results(uneven_blocks, Path::ring);
}

TEST_F(MappedExchange, ends_on_no_rank_before_its_peers_have_read) {
  meet();
  start(uneven_blocks);
  for (int turn = 0; turn < 200; ++turn) go_on(turn % 2);
  EXPECT_FALSE(ended[0] || ended[1]);
  go_on(2);
  finish();
  expect_results(uneven_blocks, Path::mapped);
}

TEST_F(MappedExchange, of_other_counts_than_a_peer_has_ends_on_both_sides_before_data_comes) {
  meet();
  start(uneven_blocks);
  std::array<ByteRange, kExchanging> wrong{};
  for (int peer = 0; peer < kExchanging; ++peer)
    wrong[peer] = {blocks[2].input.layout().offset(peer), blocks[2].input.layout().bytes(peer) - (peer == 0 ? 1 : 0)};
  blocks[2].input.set(wrong);
  finish();
  ASSERT_TRUE(ended[0] && ended[2]);
  EXPECT_TRUE(std::holds_alternative<OtherCounts>(phases[0].outcome()) &&
              std::holds_alternative<OtherCounts>(phases[2].outcome()));
  EXPECT_EQ(differing_rank(phases[0].outcome()), 12);
  EXPECT_EQ(differing_rank(phases[2].outcome()), 10);
  for (const int rank : {0, 2})
    EXPECT_EQ(results[rank], std::vector(results[rank].size(), std::byte{0})) << "data came before the counts agreed";
}

TEST_F(MappedExchange, takes_no_block_that_does_not_lie_in_its_peers_arena) {
  meet();
  start(uneven_blocks);
  std::array<ByteRange, kExchanging> beyond{};
  for (int peer = 0; peer < kExchanging; ++peer)
    beyond[peer] = {blocks[2].input.layout().offset(peer) + (peer == 0 ? process_arena().usage().reserved : 0),
                    blocks[2].input.layout().bytes(peer)};
  go_on(2);  // rank 2 has made its offer
  blocks[2].input.set(beyond);
  finish();
  EXPECT_EQ(differing_rank(phases[0].outcome()), 12);
}

}  // namespace
}  // namespace fccl::core
