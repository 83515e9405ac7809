// Tests of slices that are put ahead: ranks of one process make calls one after the other, each as far ahead as it gets.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <random>
#include <utility>
#include <vector>

#include "host/lane.h"
#include "host/phases.h"
#include "host/task.h"
#include "segment/mapped_peers.h"
#include "unit/host/outcomes.h"
#include "unit/host/rank_memory.h"

namespace fccl::core {
namespace {

struct Made {
  fcclColl_t collective;
  size_t words;
  bool waits_long = false;  // as rank 0 says by then
  int root = 0;             // the root, if the collective has one
};

// Ranks that each run a list of calls; a random one goes on for some steps at a time.
class PutAhead : public ::testing::TestWithParam<int> {
 protected:
  static uint32_t input(int rank, size_t index, size_t number) {
    return static_cast<uint32_t>(rank + 1) * 1000003U + static_cast<uint32_t>(index) * 2654435761U +
           static_cast<uint32_t>(number) * 40503U;
  }

  PutAhead() {
    std::vector<int> numbers;
    for (int rank = 0; rank < ranks; ++rank) numbers.push_back(rank);
    for (int rank = 0; rank < ranks; ++rank) {
      Member& member = members.emplace_back();
      for (const LaneId id : {kGatherLane, kPairLane}) member.lanes[id] = std::make_unique<Lane>(segment, id, rank, numbers, 1);
    }
  }

  struct Member {
    std::array<std::unique_ptr<Lane>, kLanes> lanes;
    std::vector<uint32_t> send, recv;
    Task task;
    Phase phase;
    size_t number = 0;  // of the call that it makes
    bool begun = false;
    bool enters = false;  // its next step enters the call
  };

  Lane& lane_of_call(Member& member, const Made& made) { return *member.lanes[lane_of(made.collective)]; }

  void begin(int rank, const Made& made) {
    Member& member = members[rank];
    const Signature signature{.collective = made.collective,
                              .dtype = fcclUint32,
                              .root = row_of(made.collective).is_rooted() ? made.root : -1,
                              .count = made.words};
    member.send.resize(made.words * row_of(made.collective).input_blocks(ranks));
    member.recv.assign(made.words * row_of(made.collective).output_blocks(ranks), 0xa5a5a5a5U);
    for (size_t i = 0; i < member.send.size(); ++i) member.send[i] = input(rank, i, member.number);
    Lane& lane = lane_of_call(member, made);
    if (rank == 0) lane.reach.waits_long = made.waits_long;
    member.task = {{signature, member.send.data(), member.recv.data()}, member.number, kernel_of(signature)};
    member.phase.end();
    const bool is_short = route_without_offers(member.task.call, ranks, shape.box_bytes()).has_value();
    member.phase = is_short ? mailbox(lane.frame, lane, {}, member.task) : enter(lane.frame, lane, member.task);
    member.begun = member.enters = true;
  }
  // Returns true at the end of the call.
  bool step(Member& member, const Made& made) {
    Lane& lane = lane_of_call(member, made);
    const uint64_t slices = lane.slices();
    const bool ended = member.phase.resume();
    if (std::exchange(member.enters, false)) times_ahead += lane.has_published(slices) ? 1 : 0;
    return ended && !starts_next(member.phase, lane, member.task);
  }

  void expect_result(int rank, const Made& made) const {
    const Member& member = members[rank];
    const Collective& row = row_of(made.collective);
    if (!row.takes(rank, made.root)) return;
    for (size_t i = 0; i < member.recv.size(); ++i) {
      const size_t block = i / made.words, index = i % made.words;
      const size_t own = row.input_blocks(ranks) > 1 ? static_cast<size_t>(rank) * made.words + index : index;
      const int giver = row.givers == Who::root ? made.root : static_cast<int>(block);
      uint32_t expected = row.reduces ? 0 : input(giver, own, member.number);
      for (int from = 0; row.reduces && from < ranks; ++from) expected += input(from, own, member.number);
      ASSERT_EQ(member.recv[i], expected) << row.name << " " << member.number << ", rank " << rank << ", word " << i;
    }
  }

  // Resumes a rank once if it may go on.
  void go_on(int rank, const std::vector<Made>& calls) {
    Member& member = members[rank];
    if (member.number == calls.size()) return;
    const Made& made = calls[member.number];
    if (!member.begun) begin(rank, made);
    if (member.phase.awaited().where && !member.phase.awaited().reached()) return;
    if (!step(member, made)) return;
    EXPECT_TRUE(is_done(member.phase.outcome()));
    expect_result(rank, made);
    ++member.number;
    member.begun = false;
  }

  void run(const std::vector<Made>& calls) {
    for (Member& member : members) member.number = 0;
    int ended = 0;
    for (int turn = 0; turn < 1'000'000 && ended < ranks && !HasFailure(); ++turn) {
      const int rank = static_cast<int>(generator() % static_cast<unsigned>(ranks));
      for (auto steps = generator() % 5; steps > 0; --steps) go_on(rank, calls);
      ended = 0;
      for (const Member& member : members) ended += member.number == calls.size() ? 1 : 0;
    }
    EXPECT_EQ(ended, ranks);
  }

  const int ranks = GetParam();
  const SegmentShape shape{ranks, 64, 1024};
  std::shared_ptr<Segment> segment = [this] {
    auto made = *Segment::map(*Segment::make(shape), shape);
    made->initialise(1);
    return made;
  }();
  std::vector<Member> members;
  std::mt19937 generator{7};
  int times_ahead = 0;
};

TEST_P(PutAhead, leaves_every_call_right_however_far_ranks_run_ahead) {
  constexpr fcclColl_t kAll[] = {fcclCollAllGather, fcclCollAllReduce, fcclCollReduceScatter, fcclCollReduce,
                                 fcclCollBroadcast, fcclCollGather,    fcclCollScatter,       fcclCollAlltoAll};
  constexpr size_t kWords[] = {2, 100, 101, 256, 257, 512, 700, 1500, 5000};
  for (int round = 0; round < 30; ++round) {
    std::vector<Made> calls;
    while (calls.size() < 60) {
      const Made made{kAll[generator() % std::size(kAll)], kWords[generator() % std::size(kWords)], generator() % 3 == 0,
                      static_cast<int>(generator() % static_cast<unsigned>(ranks))};
      for (auto times = 1 + generator() % 4; times > 0; --times) calls.push_back(made);
    }
    run(calls);
    if (HasFailure()) return;
  }
  EXPECT_GT(times_ahead, 1000);
}

INSTANTIATE_TEST_SUITE_P(Of, PutAhead, ::testing::Values(2, 3, 5),
                         [](const auto& info) { return std::to_string(info.param) + "_ranks"; });

TEST_P(PutAhead, happens_unless_slices_of_another_length_may_still_be_read) {
  run({{fcclCollAllGather, 500}, {fcclCollAllGather, 500}});
  EXPECT_EQ(times_ahead, 2 * ranks);
  run({{fcclCollAllGather, 100}});
  EXPECT_EQ(times_ahead, 2 * ranks);
  run({{fcclCollAllGather, 100}});
  EXPECT_EQ(times_ahead, 3 * ranks);
}

TEST_P(PutAhead, is_the_work_of_those_ranks_that_give) {
  const auto made = [](fcclColl_t collective) { return Made{collective, 500, false, 1}; };
  run({made(fcclCollBroadcast)});
  EXPECT_EQ(times_ahead, 1);
  run({made(fcclCollScatter)});
  EXPECT_EQ(times_ahead, 2);
  run({made(fcclCollGather)});
  EXPECT_EQ(times_ahead, 2 + ranks - 1);
}

// A rank that takes nothing from its peers may be many slices ahead of the one that reads its own.
TEST_P(PutAhead, waits_for_those_who_say_what_they_have_taken) {
  const std::vector<Made> calls(2, Made{fcclCollBroadcast, 500});
  for (int rank = 0; rank < ranks; ++rank) go_on(rank, calls);
  for (int step = 0; step < 3 && members[0].number == 0; ++step) go_on(0, calls);
  ASSERT_EQ(members[0].number, 1);
  EXPECT_EQ(times_ahead, 1);
  go_on(0, calls);
  EXPECT_EQ(times_ahead, 1) << "peers still read the last two slices";
}

// Two ranks whose vectors lie in arenas.
class PutAheadOfTwoArenas : public ::testing::Test {
 protected:
  PutAheadOfTwoArenas() {
    for (int rank = 0; rank < 2; ++rank) {
      Lane& lane = *lanes.emplace_back(std::make_unique<Lane>(segment, kPairLane, rank, std::vector{0, 1}, 1));
      lane.reach.mapped_peers = std::make_unique<MappedPeers>(segment, rank, std::vector<int>(2, getpid()));
    }
  }

  // Runs an AllReduce; returns how many ranks had put their first slice when they entered.
  int ahead_in(size_t words, std::array<bool, 2> in_place) {
    std::vector<RankMemory> sends, recvs;
    std::array<Phase, 2> phases;
    std::array<Task, 2> tasks;
    std::array<bool, 2> ended{};
    int ahead = 0;
    const auto step = [&](int rank) {
      if (phases[rank].resume()) ended[rank] = !starts_next(phases[rank], *lanes[rank], tasks[rank]);
    };
    const Signature made{.collective = fcclCollAllReduce, .dtype = fcclUint32, .count = words};
    for (int rank = 0; rank < 2; ++rank) {
      const RankMemory& send = sends.emplace_back(words * sizeof(uint32_t), true);
      const RankMemory& recv = recvs.emplace_back(words * sizeof(uint32_t), true);
      for (size_t i = 0; i < words; ++i) send.word(i) = static_cast<uint32_t>(i * 7 + number + rank);
      tasks[rank] = {{made, send.data(), in_place[rank] ? send.data() : recv.data()}, number, kernel_of(made)};
      phases[rank] = enter(lanes[rank]->frame, *lanes[rank], tasks[rank]);
      const uint64_t slices = lanes[rank]->slices();
      step(rank);
      ahead += lanes[rank]->has_published(slices) ? 1 : 0;
    }
    for (int turn = 0; turn < 1000; ++turn)
      if (const Phase& phase = phases[turn % 2]; !ended[turn % 2] && (!phase.awaited().where || phase.awaited().reached()))
        step(turn % 2);
    EXPECT_EQ(ended, (std::array{true, true}));
    for (int rank = 0; rank < 2; ++rank)
      for (size_t i = 0; i < words; ++i)
        EXPECT_EQ((in_place[rank] ? sends : recvs)[rank].word(i), static_cast<uint32_t>(2 * (i * 7 + number) + 1)) << i;
    ++number;
    return ahead;
  }

  const SegmentShape shape{2, 64, 4096};
  std::shared_ptr<Segment> segment = [this] {
    auto made = *Segment::map(*Segment::make(shape), shape);
    made->initialise(1);
    return made;
  }();
  std::vector<std::unique_ptr<Lane>> lanes;
  uint64_t number = 0;
};

TEST_F(PutAheadOfTwoArenas, happens_where_a_short_vector_in_place_goes_through_slots_nevertheless) {
  constexpr std::array kBoth{true, true}, kNone{false, false};
  EXPECT_EQ(ahead_in(3000, kBoth), 2) << "no rank has mapped the other's arena yet";
  EXPECT_EQ(ahead_in(3000, kBoth), 2);
  EXPECT_EQ(ahead_in(3000, {true, false}), 1) << "the other rank does not know that its peer is in place";
  EXPECT_EQ(ahead_in(3000, {false, true}), 1);
  EXPECT_EQ(ahead_in(3000, kNone), 0) << "each rank reads the other's vector";
  EXPECT_EQ(ahead_in(100'000, kBoth), 0) << "each rank reduces a half";
}

}  // namespace
}  // namespace fccl::core
