// Tests of cross-memory attach: which ranks can read others, and the outcomes of AllGather and AlltoAll, one step of one rank
// at a time.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <csignal>

#include "host/lane.h"
#include "host/phases.h"
#include "host/task.h"
#include "segment/peer_memory.h"
#include "unit/host/outcomes.h"

namespace fccl::core {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kPiece = 1 << 20;
constexpr size_t kShortest = 8 << 10;  // the shortest block that ranks attach for

std::shared_ptr<Segment> segment_of(int ranks) {
  const SegmentShape shape{ranks, 64, 4096};
  auto segment = *Segment::map(*Segment::make(shape), shape);
  segment->initialise(1);
  return segment;
}

// A mapped page, followed by an unmapped one.
struct LastPage {
  std::byte* memory =
      static_cast<std::byte*>(mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  LastPage() { munmap(memory + kPage, kPage); }
  ~LastPage() { munmap(memory, kPage); }
  LastPage(const LastPage&) = delete;
  LastPage& operator=(const LastPage&) = delete;
};

TEST(PeerMemory, of_ranks_of_one_process_is_read) {
  const auto segment = segment_of(2);
  PeerMemory first(segment, 0, {getpid(), getpid()}), second(segment, 1, {getpid(), getpid()});
  ASSERT_TRUE(first.reach_all());
  const std::vector<int> source{1, 2, 3};
  std::vector<int> target(3);
  EXPECT_TRUE(first.read(1, target.data(), source.data(), sizeof(int) * 3));
  EXPECT_EQ(target, source);
}

TEST(PeerMemory, that_is_only_partly_there_is_not_read) {
  const auto segment = segment_of(1);
  PeerMemory memory(segment, 0, {getpid()});
  ASSERT_TRUE(memory.reach_all());
  const LastPage source;
  std::vector<std::byte> target(2 * kPage);
  EXPECT_TRUE(memory.read(0, target.data(), source.memory, kPage));
  EXPECT_FALSE(memory.read(0, target.data(), source.memory, kPage + 1));
  EXPECT_FALSE(memory.read(0, target.data(), source.memory + kPage, 1));
}

TEST(PeerMemory, of_a_process_that_has_ended_is_not_reached) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  const auto segment = segment_of(2);
  PeerMemory first(segment, 0, {getpid(), child}), second(segment, 1, {getpid(), child});
  const auto reached = first.reach_all();
  ASSERT_FALSE(reached);
  EXPECT_FALSE(first.reaches_all());
  const std::string text = reached.error().message;
  EXPECT_NE(text.find("rank 0 cannot read the memory of rank 1 (pid " + std::to_string(child)), std::string::npos) << text;
  EXPECT_NE(text.find("No such process"), std::string::npos) << text;
}

// Simulates a new process that has the pid of a dead rank's process: other bytes lie where the mark was.
TEST(PeerMemory, without_the_mark_that_it_had_is_not_believed) {
  const auto segment = segment_of(2);
  PeerMemory reader(segment, 0, {getpid(), getpid()}), peer(segment, 1, {getpid(), getpid()});
  ASSERT_TRUE(reader.reach_all());
  int source = 1, target = 0;
  EXPECT_TRUE(reader.read(1, &target, &source, sizeof source));
  *std::bit_cast<uint64_t*>(segment->state(1).get_mark().address) += 1;
  EXPECT_FALSE(reader.read(1, &target, &source, sizeof source));
}

// The ranks of an AllGather by attach in one process, each resumed by hand.
class Attach : public ::testing::Test {
 protected:
  static constexpr int kRanks = 2;
  static constexpr int kTurns = 100;

  Attach() {
    for (int rank = 0; rank < kRanks; ++rank)
      lanes.push_back(std::make_unique<Lane>(segment, kGatherLane, rank, std::vector{0, 1, 2}, 1));
    attach_all();
  }

  void attach_all() {
    const std::vector<int> pids(kRanks, getpid());
    std::vector<std::unique_ptr<PeerMemory>> memories;
    for (int rank = 0; rank < kRanks; ++rank) memories.push_back(std::make_unique<PeerMemory>(segment, rank, pids));
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_TRUE(memories[rank]->reach_all());
      lanes[rank]->reach.attach(std::move(memories[rank]), kShortest);
    }
  }

  static std::byte input(int rank, size_t index) { return std::byte(1 + rank * 100 + index % 97); }

  // Begins the next call on every rank.
  void begin(size_t bytes, bool in_place) {
    count = bytes;
    sends.assign(kRanks, {});
    results.assign(kRanks, std::vector<std::byte>(kRanks * bytes, std::byte{0xa5}));
    ++number;
    for (int rank = 0; rank < kRanks; ++rank) {
      sends[rank].resize(bytes);
      std::byte* send = in_place ? results[rank].data() + rank * bytes : sends[rank].data();
      for (size_t i = 0; i < bytes; ++i) send[i] = input(rank, i);
      start(rank, send, results[rank].data());
    }
  }
  // Starts a rank's phase anew, with other buffers.
  void start(int rank, const std::byte* send, std::byte* recv) {
    start(rank, {{fcclCollAllGather, fcclInt8, ReduceOp::sum, -1, count}, send, recv});
  }
  void start(int rank, const Call& call) {
    tasks[rank] = {call, number};
    phases[rank].end();
    phases[rank] = enter(lanes[rank]->frame, *lanes[rank], tasks[rank]);
  }
  // Begins an AlltoAll with blocks of `bytes` bytes on every rank.
  void begin_to_swap(size_t bytes) {
    count = bytes;
    sends.assign(kRanks, std::vector<std::byte>(kRanks * bytes));
    results.assign(kRanks, std::vector<std::byte>(kRanks * bytes, std::byte{0xa5}));
    ++number;
    for (int rank = 0; rank < kRanks; ++rank) {
      for (size_t i = 0; i < kRanks * bytes; ++i) sends[rank][i] = input(rank, i);
      start(rank, {{fcclCollAlltoAll, fcclInt8, ReduceOp::sum, -1, count}, sends[rank].data(), results[rank].data()});
    }
  }
  // Resumes a rank until it waits for another or has ended; returns true if it has ended.
  bool go_on(int rank) {
    const auto may_go_on = [&] {
      const Awaited& awaited = phases[rank].awaited();
      return awaited.where == nullptr || awaited.reached();
    };
    while (may_go_on())
      if (resume(rank)) return true;
    return false;
  }
  // Resumes a rank once. Returns true if it has ended, also by another route than attach.
  bool resume(int rank) {
    if (!phases[rank].resume()) return false;
    if (next_route(phases[rank].outcome()).path != Path::attach) return true;
    return !starts_next(phases[rank], *lanes[rank], tasks[rank]) || resume(rank);
  }
  void finish() {
    std::array<bool, kRanks> ended{};
    for (int turn = 0; turn < kTurns; ++turn)
      if (const int rank = turn % kRanks; !ended[rank]) ended[rank] = go_on(rank);
    EXPECT_TRUE(ended[0] && ended[1]);
  }
  void expect_settled_for_the_ring() const {
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_TRUE(goes_on(phases[rank].outcome()));
      EXPECT_EQ(next_route(phases[rank].outcome()).path, Path::ring);
    }
  }
  bool is_whole(int rank) const {
    for (int source = 0; source < kRanks; ++source)
      for (size_t i = 0; i < count; ++i)
        if (results[rank][source * count + i] != input(source, i)) return false;
    return true;
  }

  std::shared_ptr<Segment> segment = segment_of(kRanks);
  std::vector<std::unique_ptr<Lane>> lanes;
  std::vector<std::vector<std::byte>> sends, results;
  std::array<Phase, kRanks> phases;
  std::array<Task, kRanks> tasks;
  size_t count = 0;
  uint64_t number = 0;
};

TEST_F(Attach, gathers_call_after_call_of_any_number_of_pieces) {
  for (const size_t bytes : {kShortest, kPiece / 2 - 1, kPiece, 3 * kPiece + 5}) {
    begin(bytes, true);
    finish();
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_TRUE(is_done(phases[rank].outcome()));
      EXPECT_TRUE(is_whole(rank)) << bytes << " bytes, rank " << rank;
    }
  }
}

TEST_F(Attach, swaps_blocks_of_any_number_of_pieces) {
  for (const size_t bytes : {kShortest, kPiece, 3 * kPiece + 5}) {
    begin_to_swap(bytes);
    finish();
    for (int rank = 0; rank < kRanks; ++rank)
      for (int source = 0; source < kRanks; ++source)
        for (size_t i = 0; i < bytes; ++i)
          ASSERT_EQ(results[rank][source * bytes + i], input(source, rank * bytes + i)) << bytes << " bytes, rank " << rank;
  }
}

TEST_F(Attach, copies_its_own_block_where_it_is_not_in_place) {
  begin(kShortest, false);
  finish();
  EXPECT_TRUE(is_whole(0));
  EXPECT_TRUE(is_whole(1));
}

// Faulting in a page may take long, and the reader would wait for it inside the kernel.
TEST_F(Attach, reads_a_piece_only_after_its_source_has_brought_it_in) {
  begin(2 * kPiece, true);
  EXPECT_FALSE(go_on(0));
  EXPECT_FALSE(go_on(1));
  EXPECT_EQ(phases[1].awaited().where, &segment->board(0, kGatherLane).published.value);
  EXPECT_EQ(results[1][0], std::byte{0xa5});
  EXPECT_FALSE(go_on(0));
  EXPECT_EQ(results[0][count + kPiece - 1], input(1, kPiece - 1));
  EXPECT_EQ(results[0][count + kPiece], std::byte{0xa5}) << "rank 1 has brought in one piece only";
  finish();
  EXPECT_TRUE(is_whole(0) && is_whole(1));
}

TEST_F(Attach, ends_for_a_source_only_after_its_peer_has_read_it) {
  begin(kPiece, true);
  EXPECT_FALSE(go_on(0));
  EXPECT_FALSE(go_on(1));
  EXPECT_FALSE(go_on(0)) << "rank 1 has read nothing";
  EXPECT_TRUE(go_on(1));
  EXPECT_TRUE(go_on(0));
}

TEST_F(Attach, gives_others_a_turn_between_two_pieces) {
  begin(2 * kPiece, true);
  EXPECT_FALSE(go_on(0));
  EXPECT_FALSE(go_on(1));
  EXPECT_FALSE(resume(0));
  EXPECT_EQ(phases[0].awaited().rank, 0) << "not a wait for rank 1";
  EXPECT_TRUE(phases[0].awaited().reached());
  EXPECT_FALSE(resume(0));
  EXPECT_EQ(phases[0].awaited().rank, 1);
}

// Rank 0 fails while it waits for rank 1, publishes the failure and returns. Its user then overwrites the bytes that rank 1 is
// about to read.
TEST_F(Attach, fails_on_a_reader_whose_source_failed_before_it_had_read) {
  begin(kShortest, true);
  EXPECT_FALSE(go_on(1));
  EXPECT_FALSE(go_on(0));
  segment->failure().first.store(1);
  phases[0].end();
  std::fill(results[0].begin(), results[0].end(), std::byte{0});
  EXPECT_TRUE(go_on(1));
  EXPECT_TRUE(has_failed(phases[1].outcome()));
}

// Rank 0 fails while rank 1 reads, so rank 1 may have read torn bytes.
TEST_F(Attach, fails_on_a_reader_whose_source_failed_while_it_read) {
  begin(kShortest, true);
  EXPECT_FALSE(go_on(0));
  EXPECT_FALSE(go_on(1));
  EXPECT_FALSE(go_on(0));
  segment->failure().first.store(1);
  EXPECT_TRUE(go_on(1));
  EXPECT_TRUE(has_failed(phases[1].outcome()));
}

TEST_F(Attach, is_settled_for_the_ring_on_every_rank_with_a_long_result_that_is_not_in_place_on_one) {
  begin(2 * kPiece, true);
  start(1, sends[1].data(), results[1].data());
  finish();
  expect_settled_for_the_ring();
  EXPECT_TRUE(lanes[0]->reach.attaching.is_open);
  EXPECT_EQ(results[0][2 * kPiece], std::byte{0xa5}) << "nothing is read";
}

TEST_F(Attach, settles_on_the_ring_on_every_rank_if_one_cannot_read_and_is_open_to_the_next_call) {
  // Lets rank 0 take a copy of this process, which has the same mark, for rank 1 until it ends.
  const pid_t copy = fork();
  if (copy == 0) ::pause();
  auto memory = std::make_unique<PeerMemory>(segment, 0, std::vector<int>{getpid(), copy});
  EXPECT_TRUE(memory->reach_all());
  lanes[0]->reach.attach(std::move(memory), kShortest);
  kill(copy, SIGKILL);
  waitpid(copy, nullptr, 0);
  begin(kShortest, true);
  finish();
  for (const Phase& phase : phases) EXPECT_TRUE(goes_on(phase.outcome()));
  attach_all();
  begin(kShortest, true);
  finish();
  for (const Phase& phase : phases) EXPECT_FALSE(goes_on(phase.outcome()));
  EXPECT_TRUE(is_whole(0) && is_whole(1));
}

TEST_F(Attach, is_over_for_good_once_a_rank_does_not_reach_its_peers) {
  lanes[1]->reach.attach(std::make_unique<PeerMemory>(segment, 1, std::vector<int>(kRanks, getpid())), kShortest);
  begin(kShortest, true);
  finish();
  expect_settled_for_the_ring();
  for (const auto& lane : lanes) EXPECT_FALSE(lane->reach.attaching.is_open);
}

TEST_F(Attach, finds_the_rank_that_made_another_call) {
  begin(kShortest, true);
  EXPECT_FALSE(go_on(0));
  count = kShortest - 1;
  start(1, results[1].data() + count, results[1].data());
  EXPECT_TRUE(go_on(1));
  EXPECT_EQ(differing_rank(phases[1].outcome()), 0);
  EXPECT_TRUE(go_on(0));
  EXPECT_EQ(differing_rank(phases[0].outcome()), 1);
}

}  // namespace
}  // namespace fccl::core
