// Transfer lanes of ranks of one thread, each moved on by hand: what matches what, what waits, and what is given back.
#include "transfers/transfer_lane.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "metrics/statistics.h"
#include "segment/peer_memory.h"
#include "segment/segment.h"
#include "segment/transfer_board.h"

namespace fccl::core {
namespace {

constexpr size_t kEager = 256;
constexpr size_t kSlot = 1024;

class TransferLaneTest : public ::testing::Test {
 protected:
  static constexpr int kRanks = 3;

  TransferLaneTest() {
    const SegmentShape shape{kRanks, kEager, kSlot};
    segment = *Segment::map(*Segment::make(shape), shape);
    segment->initialise(1);
    const std::array<int, kRanks> ranks{0, 1, 2};
    for (int rank = 0; rank < kRanks; ++rank)
      lanes.push_back(std::make_unique<TransferLane>(segment, ranks, rank, kRanks, statistics[rank]));
  }

  struct Operation {
    std::vector<std::byte> buffer;
    int source = -9;
    std::unique_ptr<TransferOperation> operation;
  };

  // Every rank reads what is of `least` bytes or more.
  void read_all(size_t least) {
    std::vector<std::shared_ptr<PeerMemory>> memories;
    for (int rank = 0; rank < kRanks; ++rank)
      memories.push_back(std::make_shared<PeerMemory>(segment, rank, std::vector<int>(kRanks, getpid())));
    for (int rank = 0; rank < kRanks; ++rank) {
      ASSERT_TRUE(memories[rank]->reach_all());
      lanes[rank]->read_from(memories[rank], least);
    }
  }

  static std::byte value(int seed, size_t index) { return static_cast<std::byte>(seed * 31 + index % 251); }

  Operation& prepare_send(int to, size_t bytes, int seed, int tag) {
    Operation& made = made_.emplace_back();
    made.buffer.resize(bytes);
    for (size_t i = 0; i < bytes; ++i) made.buffer[i] = value(seed, i);
    made.operation = std::make_unique<TransferOperation>(
        TransferEnd{Direction::send, to, {tag, fcclUint8, bytes}, made.buffer.data(), nullptr, nullptr});
    return made;
  }
  Operation& send(int from, int to, size_t bytes, int seed, int tag = kUntagged) {
    Operation& made = prepare_send(to, bytes, seed, tag);
    EXPECT_TRUE(lanes[from]->start(*made.operation));
    return made;
  }
  Operation& prepare_receive(int from, size_t bytes, int tag) {
    Operation& made = made_.emplace_back();
    made.buffer.assign(bytes, std::byte{0xa5});
    made.operation = std::make_unique<TransferOperation>(
        TransferEnd{Direction::receive, from, {tag, fcclUint8, bytes}, nullptr, made.buffer.data(), &made.source});
    return made;
  }
  Operation& receive(int rank, int from, size_t bytes, int tag = kUntagged) {
    Operation& made = prepare_receive(from, bytes, tag);
    EXPECT_TRUE(lanes[rank]->start(*made.operation));
    return made;
  }
  // Until nothing moves any more.
  void progress() {
    for (int round = 0; round < 200; ++round)
      for (const auto& lane : lanes) lane->progress();
  }
  static bool holds(const Operation& made, int seed) {
    for (size_t i = 0; i < made.buffer.size(); ++i)
      if (made.buffer[i] != value(seed, i)) return false;
    return made.operation->has_ended();
  }

  std::shared_ptr<Segment> segment;
  std::array<Statistics, kRanks> statistics;
  std::vector<std::unique_ptr<TransferLane>> lanes;

 private:
  std::deque<Operation> made_;
};

TEST_F(TransferLaneTest, ends_a_short_send_before_anybody_receives_it) {
  for (const size_t bytes : {size_t{0}, size_t{32}, size_t{33}, kEager}) {
    EXPECT_TRUE(send(0, 1, bytes, 1).operation->has_ended()) << bytes;
    EXPECT_TRUE(holds(receive(1, 0, bytes), 1)) << bytes;
  }
}

TEST_F(TransferLaneTest, ends_a_long_send_when_its_receive_has_taken_it) {
  const Operation& sent = send(0, 1, 10 * kSlot + 1, 2);
  progress();
  EXPECT_FALSE(sent.operation->has_ended());
  const Operation& received = receive(1, 0, 10 * kSlot + 1);
  progress();
  EXPECT_TRUE(sent.operation->has_ended());
  EXPECT_TRUE(holds(received, 2));
}

size_t bytes_put = 0;

TEST_F(TransferLaneTest, writes_its_slots_as_it_is_told) {
  lanes[0]->put = [](void* slot, const void* source, size_t bytes) {
    bytes_put += bytes;
    stream_bytes(slot, source, bytes);
  };
  send(0, 1, 10 * kSlot + 1, 2);
  send(2, 1, 10 * kSlot + 1, 3);
  const Operation& received = receive(1, 0, 10 * kSlot + 1);
  const Operation& other = receive(1, 2, 10 * kSlot + 1);
  progress();
  EXPECT_TRUE(holds(received, 2));
  EXPECT_TRUE(holds(other, 3));
  EXPECT_EQ(bytes_put, 10 * kSlot + 1);
}

TEST_F(TransferLaneTest, reads_long_transfers_where_they_lie) {
  constexpr size_t kBytes = (size_t{5} << 19) + 3;
  read_all(kBytes);
  const Operation& sent = send(0, 1, kBytes, 9);
  const Operation& received = receive(1, 0, kBytes);
  progress();
  EXPECT_TRUE(holds(received, 9));
  EXPECT_NE(received.operation->lent, nullptr);
  EXPECT_TRUE(sent.operation->has_ended());
  const Operation& shorter = receive(1, 0, 40 * kSlot);
  send(0, 1, 40 * kSlot, 4);
  progress();
  EXPECT_TRUE(holds(shorter, 4));
  EXPECT_EQ(shorter.operation->lent, nullptr);
}

TEST_F(TransferLaneTest, reads_what_came_before_its_receive_and_what_a_rank_sends_to_itself) {
  read_all(1);
  const Operation& early = send(0, 1, 9 * kSlot, 1, 7);
  const Operation& own = send(1, 1, 8 * kSlot, 2, 8);
  progress();
  const Operation& received = receive(1, FCCL_ANY_SOURCE, 9 * kSlot, 7);
  const Operation& of_its_own = receive(1, 1, 8 * kSlot, 8);
  progress();
  for (const Operation* each : {&early, &own}) EXPECT_TRUE(each->operation->has_ended());
  EXPECT_TRUE(holds(received, 1));
  EXPECT_TRUE(holds(of_its_own, 2));
  for (const Operation* each : {&received, &of_its_own}) EXPECT_NE(each->operation->lent, nullptr);
}

// The sender's own loads succeed, and its receiver is told of an address where nothing is.
TEST_F(TransferLaneTest, goes_through_slots_where_the_memory_cannot_be_read) {
  read_all(1);
  constexpr size_t kBytes = 40 * kSlot;
  const Operation& sent = send(0, 1, kBytes, 8);
  Operation& received = prepare_receive(0, kBytes, kUntagged);
  // Between the offer and its grant the notice stands on the board.
  NoticeLine& offer = segment->transfer_board(0, 1).notices[0];
  ASSERT_EQ(offer.notice.kind, Notice::kOffer);
  const uintptr_t nowhere = 64;
  std::memcpy(offer.beside.data(), &nowhere, sizeof nowhere);
  ASSERT_TRUE(lanes[1]->start(*received.operation));
  progress();
  EXPECT_TRUE(sent.operation->has_ended());
  EXPECT_TRUE(holds(received, 8));
  // Later transfers between the two arrive whole, too.
  const Operation& next = send(0, 1, kBytes, 3);
  const Operation& after = receive(1, 0, kBytes);
  progress();
  EXPECT_TRUE(next.operation->has_ended());
  EXPECT_TRUE(holds(after, 3));
  EXPECT_EQ(after.operation->lent, next.buffer.data());
}

TEST_F(TransferLaneTest, reads_nothing_once_the_communicator_has_failed) {
  read_all(1);
  const Operation& received = receive(1, 0, 9 * kSlot);
  const Operation& sent = send(0, 1, 9 * kSlot, 1);
  segment->failure().first.store(1);
  progress();
  EXPECT_FALSE(received.operation->has_ended());
  EXPECT_FALSE(sent.operation->has_ended());
  EXPECT_EQ(std::ranges::count(received.buffer, std::byte{0xa5}), static_cast<ptrdiff_t>(9 * kSlot));
}

// More than is brought in at once.
TEST_F(TransferLaneTest, lends_what_is_very_long_once_all_of_it_is_there) {
  constexpr size_t kBytes = (size_t{33} << 20) + 5;
  read_all(1);
  const Operation& sent = send(0, 1, kBytes, 6);
  const Operation& behind = send(0, 1, 9 * kSlot, 7);
  const Operation& received = receive(1, 0, kBytes);
  const Operation& last = receive(1, 0, 9 * kSlot);
  progress();
  EXPECT_TRUE(sent.operation->has_ended());
  EXPECT_TRUE(behind.operation->has_ended());
  EXPECT_TRUE(holds(received, 6));
  EXPECT_TRUE(holds(last, 7));
}

TEST_F(TransferLaneTest, lets_a_ninth_short_send_wait_for_a_receive) {
  for (int i = 0; i < TransferBoard::kEagerSlots; ++i) EXPECT_TRUE(send(0, 1, 8, i).operation->has_ended());
  const Operation& ninth = send(0, 1, 8, 100);
  progress();
  EXPECT_FALSE(ninth.operation->has_ended());
  for (int i = 0; i < TransferBoard::kEagerSlots; ++i) EXPECT_TRUE(holds(receive(1, 0, 8), i));
  const Operation& last = receive(1, 0, 8);
  progress();
  EXPECT_TRUE(ninth.operation->has_ended());
  EXPECT_TRUE(holds(last, 100));
}

TEST_F(TransferLaneTest, uses_a_slot_again_though_an_older_one_is_still_taken) {
  send(0, 1, 200, 7, 1);
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(send(0, 1, 200, i, 2).operation->has_ended()) << i;
    EXPECT_TRUE(holds(receive(1, 0, 200, 2), i)) << i;
  }
  EXPECT_TRUE(holds(receive(1, 0, 200, 1), 7));
}

// More than there are notices on a board.
TEST_F(TransferLaneTest, takes_in_every_notice_whatever_its_tag) {
  constexpr int kTags = 100;
  std::vector<const Operation*> sent;
  for (int tag = 0; tag < kTags; ++tag) sent.push_back(&send(0, 1, 5 * kSlot, tag, tag));
  for (int tag = kTags - 1; tag >= 0; --tag) {
    const Operation& received = receive(1, 0, 5 * kSlot, tag);
    progress();
    EXPECT_TRUE(holds(received, tag)) << tag;
    EXPECT_TRUE(sent[tag]->operation->has_ended()) << tag;
  }
}

TEST_F(TransferLaneTest, gives_what_comes_to_the_receive_that_was_posted_first) {
  const Operation& any = receive(1, FCCL_ANY_SOURCE, 8, 3);
  const Operation& named = receive(1, 0, 8, 3);
  send(0, 1, 8, 1, 3);
  progress();
  EXPECT_TRUE(holds(any, 1));
  EXPECT_EQ(any.source, 0);
  EXPECT_FALSE(named.operation->has_ended());
  send(2, 1, 8, 2, 3);
  progress();
  EXPECT_FALSE(named.operation->has_ended());
  send(0, 1, 8, 3, 3);
  progress();
  EXPECT_TRUE(holds(named, 3));
  const Operation& rest = receive(1, FCCL_ANY_SOURCE, 8, 3);
  EXPECT_TRUE(holds(rest, 2));
  EXPECT_EQ(rest.source, 2);
}

TEST_F(TransferLaneTest, tells_of_ends_that_differ_and_writes_nothing) {
  for (const size_t bytes : {size_t{100}, 5 * kSlot}) {
    send(0, 1, bytes, 1);
    const Operation& received = receive(1, 0, bytes + 1);
    progress();
    ASSERT_TRUE(received.operation->has_ended());
    EXPECT_TRUE(received.operation->differs);
    EXPECT_EQ(received.operation->theirs.count, bytes);
    EXPECT_EQ(std::ranges::count(received.buffer, std::byte{0xa5}), static_cast<ptrdiff_t>(bytes + 1));
    EXPECT_EQ(statistics[1].of(fcclCollRecv).calls, 0U);
  }
}

TEST_F(TransferLaneTest, starts_what_shares_an_order_in_the_order_of_issue) {
  Operation& first = prepare_send(1, 8, 1, 5);
  Operation& second = prepare_send(1, 8, 2, 5);
  Operation& other_tag = prepare_send(1, 8, 3, 6);
  for (const Operation* each : {&first, &second, &other_tag}) lanes[0]->issue(*each->operation);
  EXPECT_FALSE(lanes[0]->start(*second.operation));
  EXPECT_TRUE(lanes[0]->start(*other_tag.operation));
  EXPECT_TRUE(lanes[0]->start(*first.operation));
  EXPECT_TRUE(lanes[0]->start(*second.operation));
  EXPECT_TRUE(holds(receive(1, 0, 8, 5), 1));
  EXPECT_TRUE(holds(receive(1, 0, 8, 5), 2));
}

TEST_F(TransferLaneTest, starts_at_once_what_is_issued_behind_nothing_of_its_order) {
  Operation& first = prepare_send(1, 8, 1, 5);
  Operation& second = prepare_send(1, 8, 2, 5);
  Operation& other_tag = prepare_send(1, 8, 3, 6);
  lanes[0]->issue(*first.operation);
  {
    TransferLane::Turn turn(*lanes[0]);
    EXPECT_FALSE(turn.start(*second.operation));
    EXPECT_TRUE(turn.start(*other_tag.operation));
  }
  EXPECT_FALSE(lanes[0]->start(*second.operation));
  EXPECT_TRUE(lanes[0]->start(*first.operation));
  EXPECT_TRUE(lanes[0]->start(*second.operation));
  EXPECT_TRUE(holds(receive(1, 0, 8, 5), 1));
  EXPECT_TRUE(holds(receive(1, 0, 8, 5), 2));
}

// The sender looks again at what is taken, and at what is released, only when it knows of no room.
TEST_F(TransferLaneTest, finds_room_on_a_board_again_and_again) {
  for (int i = 0; i < 100; ++i) {
    const size_t bytes = i % 3 == 0 ? 200 : 8;
    EXPECT_TRUE(send(0, 1, bytes, i).operation->has_ended()) << i;
    if (i % 5 < 3) continue;
    for (int late = i - (i % 5 == 3 ? 3 : 0); late <= i; ++late)
      EXPECT_TRUE(holds(receive(1, 0, late % 3 == 0 ? 200 : 8), late)) << late;
  }
}

TEST_F(TransferLaneTest, gives_back_a_receive_that_is_withdrawn) {
  Operation& withdrawn = receive(1, 0, 8);
  lanes[1]->withdraw(*withdrawn.operation);
  send(0, 1, 8, 4);
  progress();
  EXPECT_FALSE(withdrawn.operation->has_ended());
  EXPECT_EQ(withdrawn.buffer[0], std::byte{0xa5});
  EXPECT_TRUE(holds(receive(1, 0, 8), 4));
}

TEST_F(TransferLaneTest, moves_nothing_once_the_communicator_has_failed) {
  const Operation& received = receive(1, 0, 8);
  segment->failure().first = 1;
  send(0, 1, 8, 4);
  progress();
  EXPECT_FALSE(received.operation->has_ended());
}

TEST_F(TransferLaneTest, sends_to_its_own_rank) {
  for (const size_t bytes : {size_t{8}, kEager, size_t{300'000}}) {
    const Operation& sent = send(2, 2, bytes, 6);
    const Operation& received = receive(2, 2, bytes);
    progress();
    EXPECT_TRUE(sent.operation->has_ended()) << bytes;
    EXPECT_TRUE(holds(received, 6)) << bytes;
  }
}

// Notices of a broken peer: the lane reads and writes nothing where it does not belong.
TEST_F(TransferLaneTest, comes_to_no_harm_by_notices_that_make_no_sense) {
  std::mt19937_64 dice(7);
  receive(1, 0, 100, 3);
  send(1, 0, 10 * kSlot, 4);
  TransferBoard& board = segment->transfer_board(0, 1);
  for (uint64_t number = 0; number < 500; ++number) {
    NoticeLine& line = board.notices[number % TransferBoard::kNotices];
    Notice notice;
    notice.kind = static_cast<Notice::Kind>(dice() % 5);
    notice.dtype = static_cast<uint8_t>(dice());
    notice.slot = static_cast<uint16_t>(dice());
    notice.tag = static_cast<int32_t>(dice() % 8);
    notice.count = dice() >> (dice() % 64);
    notice.transfer = dice() % 3;
    line.notice = notice;
    line.word.store(number + 1, std::memory_order_release);
    lanes[1]->progress();
    ASSERT_EQ(board.taken.value.load(), number + 1);
  }
}

TEST_F(TransferLaneTest, counts_what_has_ended) {
  send(0, 1, 10, 1);
  send(0, 1, 10 * kSlot, 1);
  receive(1, 0, 10);
  receive(1, 0, 10 * kSlot);
  progress();
  EXPECT_EQ(statistics[0].of(fcclCollSend).calls, 2U);
  EXPECT_EQ(statistics[0].of(fcclCollSend).bytes, 10 + 10 * kSlot);
  EXPECT_EQ(statistics[1].of(fcclCollRecv).calls, 2U);
  EXPECT_GT(statistics[1].of(fcclCollRecv).seconds, 0);
  EXPECT_EQ(statistics[2].of(fcclCollRecv).calls, 0U);
}

}  // namespace
}  // namespace fccl::core
