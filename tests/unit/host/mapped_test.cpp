// Tests of mapped memory: when a call takes this path, and its outcome, one step of one rank at a time.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <random>

#include "arena/arena.h"
#include "arena/reservation.h"
#include "host/lane.h"
#include "host/path.h"
#include "host/phases.h"
#include "host/task.h"
#include "segment/mapped_peers.h"
#include "segment/rank_state.h"
#include "unit/host/outcomes.h"
#include "unit/host/rank_memory.h"

namespace fccl::core {
namespace {

constexpr size_t kLarge = 3 << 20;  // several pieces

// A path, and whether each rank reduces the whole vector.
struct Way {
  Path path = Path::alone;
  bool whole = false;

  bool operator==(const Way&) const = default;
};
constexpr Way kRing{Path::ring}, kMapped{Path::mapped}, kWhole{Path::mapped, true};

// Every rank reduces a short vector whole if no rank is in place.
Way mapped_way(fcclColl_t collective, size_t words, bool in_place) {
  const bool whole = collective == fcclCollAllReduce && !in_place && words * sizeof(uint32_t) * 2 <= 512 << 10;
  return {Path::mapped, whole};
}

constexpr fcclColl_t kMapping[] = {fcclCollAllGather, fcclCollBroadcast, fcclCollGather, fcclCollScatter,
                                   fcclCollAlltoAll,  fcclCollAllReduce, fcclCollReduce, fcclCollReduceScatter};

int times_put = 0;

// The ranks of one process, each resumed by hand.
class Mapped : public ::testing::Test {
 protected:
  static constexpr int kRanks = 3;

  Mapped() {
    for (const LaneId id : {kGatherLane, kPairLane})
      for (int rank = 0; rank < kRanks; ++rank) {
        lanes[id].push_back(std::make_unique<Lane>(segment, id, rank, std::vector{0, 1, 2}, 1));
        lanes[id][rank]->reach.mapped_peers = std::make_unique<MappedPeers>(segment, rank, std::vector<int>(kRanks, getpid()));
      }
  }

  static uint32_t input(int rank, size_t index, uint64_t iteration) {
    return static_cast<uint32_t>(rank + 1) * 1000003U + static_cast<uint32_t>(index) * 2654435761U +
           static_cast<uint32_t>(iteration) * 40503U;
  }

  // Begins a call of `words` words per block on every rank.
  void begin(fcclColl_t collective, size_t words, bool in_place, std::array<bool, kRanks> in_arena) {
    sends.clear();
    recvs.clear();
    ++number;
    made = {.collective = collective, .dtype = fcclUint32, .count = words};
    if (row_of(collective).is_rooted()) made.root = 1;
    const Collective& row = row_of(collective);
    placed = in_place && !row.has_pairs();
    const size_t given = words * row.input_blocks(kRanks), taken = words * row.output_blocks(kRanks);
    for (int rank = 0; rank < kRanks; ++rank) {
      sends.emplace_back(std::max(given, taken) * sizeof(uint32_t), in_arena[rank]);
      recvs.emplace_back(taken * sizeof(uint32_t), in_arena[rank]);
      uint32_t* send = send_of(rank);
      for (size_t i = 0; i < given; ++i) send[i] = input(rank, i, number);
      start(rank);
    }
  }
  // An in-place call has both buffers in `sends`.
  uint32_t* send_of(int rank) {
    const bool own_block = placed && row_of(made.collective).output_blocks(kRanks) > 1;
    return &sends[rank].word(own_block ? rank * made.count : 0);
  }
  uint32_t* recv_of(int rank) {
    if (!placed) return &recvs[rank].word(0);
    return &sends[rank].word(row_of(made.collective).input_blocks(kRanks) > 1 ? rank * made.count : 0);
  }
  Lane& lane(int rank) { return *lanes[lane_of(made.collective)][rank]; }
  Task task_of(int rank) { return {{made, send_of(rank), recv_of(rank)}, number, kernel_of(made)}; }
  void start(int rank) {
    const Task task = task_of(rank);
    ended[rank] = false;
    phases[rank].end();
    if (route_without_offers(task.call, kRanks, shape.box_bytes())) {
      phases[rank] = mailbox(lane(rank).frame, lane(rank), {}, task);
      way_of[rank] = {Path::mailbox, false};
    } else {
      phases[rank] = enter(lane(rank).frame, lane(rank), task);
    }
  }
  // Resumes a rank until it waits for another or has ended; returns true if it has ended.
  bool go_on(int rank) {
    const auto may_go_on = [&] { return !phases[rank].awaited().where || phases[rank].awaited().reached(); };
    while (!ended[rank] && may_go_on()) step(rank);
    return ended[rank];
  }
  void step(int rank) {
    if (!phases[rank].resume()) return;
    const Route route = next_route(phases[rank].outcome());
    if (starts_next(phases[rank], lane(rank), task_of(rank)))
      way_of[rank] = {route.path, route.variant == Variant::whole};
    else
      ended[rank] = true;
  }
  // Gives each turn to a random rank, for a random number of steps.
  void finish() {
    for (int turn = 0; turn < 10'000 && ended != std::array{true, true, true}; ++turn) {
      const int rank = static_cast<int>(generator() % kRanks);
      for (auto steps = generator() % 4; steps > 0 && !ended[rank]; --steps)
        if (!phases[rank].awaited().where || phases[rank].awaited().reached()) step(rank);
    }
    EXPECT_EQ(ended, (std::array{true, true, true}));
  }
  // Returns the expected word `index` of block `block` of a rank's result.
  uint32_t expected(int rank, size_t block, size_t index) const {
    const Collective& row = made.row();
    const size_t own = row.input_blocks(kRanks) > 1 ? rank * made.count + index : index;
    if (!row.reduces) return input(row.givers == Who::root ? made.root : static_cast<int>(block), own, number);
    uint32_t sum = 0;
    for (int from = 0; from < kRanks; ++from) sum += input(from, own, number);
    return sum;
  }
  void expect_results(Way way) {
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(way_of[rank], way);
      EXPECT_TRUE(is_done(phases[rank].outcome()));
      if (!made.row().takes(rank, made.root)) continue;
      for (size_t block = 0; block < made.row().output_blocks(kRanks); ++block) {
        const size_t from = made.row().output_blocks(kRanks) > 1 ? block : 0;
        for (size_t i = 0; i < made.count; ++i)
          ASSERT_EQ(
              (placed && made.row().output_blocks(kRanks) > 1 ? &sends[rank].word(0) : recv_of(rank))[block * made.count + i],
              expected(rank, from, i))
              << "rank " << rank << ", block " << block << ", word " << i;
      }
    }
  }
  void run(fcclColl_t collective, size_t words, bool in_place, std::array<bool, kRanks> in_arena, Way way) {
    SCOPED_TRACE(::testing::Message() << name_of(collective) << ", " << words << " words, in place " << in_place);
    begin(collective, words, in_place, in_arena);
    finish();
    expect_results(way);
  }

  // Has all ranks map each other's arenas.
  void meet() {
    run(fcclCollAllGather, 100, false, kAll, kRing);
    run(fcclCollAllReduce, 100, false, kAll, kRing);
  }
  // Has all ranks write slots past the caches, and count how often.
  void write_past_caches() {
    for (const LaneId id : {kGatherLane, kPairLane})
      for (const auto& each : lanes[id])
        each->slots.put = [](void* slot, const void* source, size_t bytes) {
          ++times_put;
          stream_bytes(slot, source, bytes);
        };
  }
  // Runs each collective that maps, of several lengths, in place and not.
  void run_all() {
    for (const fcclColl_t collective : kMapping)
      for (const size_t words : {size_t{33}, size_t{1025}, size_t{200'003}, kLarge / 4})
        for (const bool in_place : {false, true}) {
          const bool placed_too = in_place && collective != fcclCollGather && collective != fcclCollScatter;
          run(collective, words, placed_too, kAll, mapped_way(collective, words, placed_too));
        }
  }

  static constexpr std::array<bool, kRanks> kAll{true, true, true};
  static constexpr std::array<bool, kRanks> kNone{};

  const SegmentShape shape{kRanks, 64, 4096};
  std::shared_ptr<Segment> segment = [this] {
    auto made_segment = *Segment::map(*Segment::make(shape), shape);
    made_segment->initialise(1);
    return made_segment;
  }();
  std::array<std::vector<std::unique_ptr<Lane>>, kLanes> lanes;
  std::vector<RankMemory> sends, recvs;
  std::array<Phase, kRanks> phases;
  std::array<Way, kRanks> way_of{};
  std::array<bool, kRanks> ended{};
  Signature made;
  bool placed = false;
  uint64_t number = 0;
  std::mt19937 generator{1};
};

TEST_F(Mapped, is_taken_from_the_second_call_on_which_all_ranks_offer) {
  run(fcclCollAllGather, 1000, false, kAll, kRing);
  run(fcclCollAllGather, 1000, false, kAll, kMapped);
  run(fcclCollReduceScatter, 1000, false, kAll, kRing);
  run(fcclCollReduceScatter, 1000, false, kAll, kMapped);
}

TEST_F(Mapped, is_right_for_every_collective_size_and_place_in_any_order_of_steps) {
  meet();
  run_all();
}

TEST_F(Mapped, is_right_where_slots_are_written_past_the_caches) {
  meet();
  write_past_caches();
  run_all();
  times_put = 0;
  run(fcclCollAllReduce, 100'000, true, kAll, kMapped);
  EXPECT_EQ(times_put, 3 * (9 + 2)) << "a rank's shard has nine parts, and those of its peers come whole";
}

TEST_F(Mapped, needs_only_what_peers_read) {
  run(fcclCollAllGather, 100, false, kAll, kRing);
  run(fcclCollBroadcast, 1000, false, {false, true, false}, kMapped);
  run(fcclCollScatter, 1000, false, {false, true, false}, kMapped);
  run(fcclCollGather, 1000, false, {true, false, true}, kMapped);
  run(fcclCollBroadcast, 1000, false, {true, false, true}, kRing);
  run(fcclCollGather, 1000, false, {true, true, false}, kRing);
}

TEST_F(Mapped, comes_and_goes_with_the_offers) {
  run(fcclCollAllReduce, 1000, false, kAll, kRing);
  for (int rank = 0; rank < kRanks; ++rank) {
    std::array<bool, kRanks> all_but_one = kAll;
    all_but_one[rank] = false;
    run(fcclCollAllReduce, 5000, rank % 2 == 0, kAll, rank % 2 == 0 ? kMapped : kWhole);
    run(fcclCollAllReduce, 5000, rank % 2 == 1, all_but_one, kRing);
    run(fcclCollReduceScatter, 5000, false, kNone, kRing);
  }
}

// Results go through slots if inputs are in the arena and outputs are not.
TEST_F(Mapped, reduces_into_private_memory) {
  run(fcclCollAllReduce, 1000, false, kAll, kRing);
  for (const size_t words : {size_t{1000}, size_t{100'001}}) {
    begin(fcclCollAllReduce, words, false, kAll);
    recvs.clear();
    for (int rank = 0; rank < kRanks; ++rank) recvs.emplace_back(words * sizeof(uint32_t), rank == 1);
    for (int rank = 0; rank < kRanks; ++rank) start(rank);
    finish();
    expect_results(mapped_way(fcclCollAllReduce, words, false));
  }
}

// A single in-place rank makes all ranks use shards, since its peers would read what it has overwritten.
TEST_F(Mapped, reduces_short_vectors_whole_unless_a_rank_is_in_place) {
  run(fcclCollAllReduce, 1000, false, kAll, kRing);
  run(fcclCollAllReduce, 1000, false, kAll, kWhole);
  begin(fcclCollAllReduce, 1000, false, kAll);
  phases[1].end();
  const Task in_place{{made, send_of(1), send_of(1)}, number, kernel_of(made)};
  phases[1] = enter(lane(1).frame, lane(1), in_place);
  for (const int rank : {0, 1, 2, 0, 1})
    while (!goes_on(phases[rank].outcome()) && (!phases[rank].awaited().where || phases[rank].awaited().reached()))
      if (phases[rank].resume()) break;
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_TRUE(goes_on(phases[rank].outcome()));
    EXPECT_EQ(next_route(phases[rank].outcome()).variant, Variant::shards);
  }
}

TEST_F(Mapped, ends_for_a_source_only_after_its_peers_have_read_it) {
  run(fcclCollAllGather, 1000, false, kAll, kRing);
  begin(fcclCollAllGather, 1000, true, kAll);
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_FALSE(go_on(rank));
  EXPECT_FALSE(go_on(0)) << "rank 1 has not read it";
  EXPECT_FALSE(go_on(2)) << "rank 1 has not read it";
  EXPECT_TRUE(go_on(1));
  EXPECT_TRUE(go_on(0));
  EXPECT_TRUE(go_on(2));
}

TEST_F(Mapped, gives_others_a_turn_between_two_pieces) {
  for (const fcclColl_t collective : {fcclCollAllGather, fcclCollReduceScatter, fcclCollAllReduce}) {
    run(collective, 1000, false, kAll, collective == fcclCollAllReduce ? kWhole : kRing);
    begin(collective, kLarge, false, kAll);
    int turns = 0;
    for (int step = 0; step < 1000 && !ended[0]; ++step) {
      if (phases[0].awaited().where && phases[0].awaited().reached() && phases[0].awaited().rank == 0) ++turns;
      for (int rank = 0; rank < kRanks; ++rank)
        if (!ended[rank] && (!phases[rank].awaited().where || phases[rank].awaited().reached())) this->step(rank);
    }
    EXPECT_GE(turns, 2) << name_of(collective);
    finish();
  }
}

// Rank 0 fails while it waits for the others, publishes the failure and returns. Its user then overwrites the bytes that they
// are about to read.
TEST_F(Mapped, fails_on_readers_whose_source_failed_before_they_had_read) {
  run(fcclCollAllGather, 1000, false, kAll, kRing);
  begin(fcclCollAllGather, 1000, false, kAll);
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_FALSE(go_on(rank));
  segment->failure().first.store(1);
  phases[0].end();
  std::memset(sends[0].data(), 0, 1000 * sizeof(uint32_t));
  EXPECT_TRUE(go_on(1));
  EXPECT_TRUE(has_failed(phases[1].outcome()));
  EXPECT_FALSE(go_on(2)) << "it waits for rank 0, as whoever runs it finds out";
}

// Rank 0 fails after it has read, so no rank waits for it any more.
TEST_F(Mapped, fails_on_readers_whose_source_failed_while_they_read) {
  run(fcclCollAllGather, 1000, false, kAll, kRing);
  begin(fcclCollAllGather, 1000, false, kAll);
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_FALSE(go_on(rank));
  EXPECT_FALSE(go_on(0));
  segment->failure().first.store(1);
  for (const int rank : {1, 2}) {
    EXPECT_TRUE(go_on(rank));
    EXPECT_TRUE(has_failed(phases[rank].outcome()));
  }
}

TEST_F(Mapped, fails_in_a_reduction_whose_source_failed_before_it_was_read) {
  run(fcclCollReduceScatter, 1000, false, kAll, kRing);
  begin(fcclCollReduceScatter, 1000, false, kAll);
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_FALSE(go_on(rank));
  segment->failure().first.store(1);
  phases[0].end();
  std::memset(sends[0].data(), 0, 1000 * sizeof(uint32_t));
  EXPECT_TRUE(go_on(1));
  EXPECT_TRUE(has_failed(phases[1].outcome()));
}

TEST_F(Mapped, is_over_for_good_once_a_rank_cannot_map_a_peer) {
  begin(fcclCollAllGather, 1000, false, kAll);
  EXPECT_FALSE(go_on(1));
  EXPECT_FALSE(go_on(2));
  ArenaName other = segment->state(1).get_arena();
  other.id[0] ^= 1;
  other.descriptor = -1;
  segment->state(1).set_arena(other);
  finish();
  expect_results(kRing);
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_NE(lane(rank).reach.mapped_peers, nullptr);
  run(fcclCollAllGather, 1000, false, kAll, kRing);
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(lane(rank).reach.mapped_peers, nullptr);
  run(fcclCollAllGather, 1000, false, kAll, kRing);
}

// Calls of private memory, before which one rank has said that it waits long, in turn with others.
TEST_F(Mapped, is_not_needed_for_slices_of_two_slots) {
  for (const fcclColl_t collective : kMapping)
    for (const size_t words : {size_t{33}, size_t{1025}, size_t{4099}, size_t{20'003}})
      for (const int waiting : {1, -1, 2}) {
        const bool in_place = words % 2 == 1 && collective != fcclCollGather && collective != fcclCollScatter;
        for (int rank = 0; rank < kRanks; ++rank)
          for (const LaneId id : {kGatherLane, kPairLane}) lanes[id][rank]->reach.waits_long = rank == waiting;
        run(collective, words, in_place, kNone, kRing);
        EXPECT_EQ(lane(0).reach.long_slices, waiting >= 0);
      }
}

TEST_F(Mapped, is_not_needed_for_slots_that_are_written_in_a_way_of_their_own) {
  write_past_caches();
  for (const fcclColl_t collective : kMapping)
    for (const size_t words : {size_t{33}, size_t{4099}}) {
      times_put = 0;
      run(collective, words, false, kNone, kRing);
      EXPECT_GT(times_put, 0) << name_of(collective);
    }
}

TEST_F(Mapped, finds_the_rank_that_made_another_call) {
  run(fcclCollAllGather, 1000, false, kAll, kRing);
  run(fcclCollAllGather, 1000, false, kAll, kMapped);
  begin(fcclCollAllGather, 1000, false, kAll);
  made.count = 999;
  start(1);
  for (const int rank : {0, 1, 2, 0, 1}) go_on(rank);
  EXPECT_EQ(differing_rank(phases[0].outcome()), 1);
  EXPECT_EQ(differing_rank(phases[1].outcome()), 2);
  EXPECT_EQ(differing_rank(phases[2].outcome()), 1);
}

}  // namespace
}  // namespace fccl::core
