// Tests of a lane's entry word: the peers' view of calls, in order and across the wrap of the sequence.
#include "host/lane.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

namespace fccl::core {
namespace {

constexpr uint32_t kNearTheWrap = 0xfffffffe;

// Two ranks of one process on the gather lane.
struct Pair {
  std::shared_ptr<Segment> segment;
  Lane first, second;

  static Pair make(uint32_t sequence) {
    const SegmentShape shape{2, 256, 64};
    const auto memory = Segment::make(shape);
    auto segment = *Segment::map(*memory, shape);
    segment->initialise(sequence);
    return {segment, Lane(segment, kGatherLane, 0, {0, 1}, sequence), Lane(segment, kGatherLane, 1, {0, 1}, sequence)};
  }
};

Call gather_of(size_t count) { return {.signature = {fcclCollAllGather, fcclInt8, ReduceOp::sum, -1, count}}; }

TEST(Lane, waits_for_the_word_of_a_peer_that_has_not_entered) {
  Pair lanes = Pair::make(1);
  lanes.first.enter(gather_of(1), 5, nullptr, 0);
  EXPECT_FALSE(lanes.first.entered(1).reached());
  lanes.second.enter(gather_of(1), 5, nullptr, 0);
  EXPECT_TRUE(lanes.first.entered(1).reached());
  EXPECT_TRUE(lanes.first.agrees(1));
}

TEST(Lane, knows_calls_in_order_across_the_wrap_of_its_sequence) {
  Pair lanes = Pair::make(kNearTheWrap);
  for (uint64_t number = 0; number < 6; ++number) {
    lanes.first.enter(gather_of(1), number, nullptr, 0);
    EXPECT_FALSE(lanes.first.entered(1).reached()) << "call " << number;
    lanes.second.enter(gather_of(1), number, nullptr, 0);
    EXPECT_TRUE(lanes.first.entered(1).reached()) << "call " << number;
    EXPECT_TRUE(lanes.first.agrees(1));
  }
}

TEST(Lane, sees_the_word_of_a_peer_that_is_one_call_ahead) {
  Pair lanes = Pair::make(kNearTheWrap);
  lanes.first.enter(gather_of(1), 0, nullptr, 0);
  lanes.second.enter(gather_of(1), 0, nullptr, 0);
  lanes.second.enter(gather_of(2), 1, nullptr, 0);
  EXPECT_TRUE(lanes.first.entered(1).reached());
  EXPECT_TRUE(lanes.first.agrees(1));
}

size_t bytes_put = 0;

TEST(Lane, writes_a_payload_of_two_KiB_or_more_as_its_slots_are_written) {
  const SegmentShape shape{2, 4096, 64};
  const auto segment = *Segment::map(*Segment::make(shape), shape);
  segment->initialise(1);
  Lane first(segment, kGatherLane, 0, {0, 1}, 1), second(segment, kGatherLane, 1, {0, 1}, 1);
  first.slots.put = [](void* slot, const void* source, size_t bytes) {
    bytes_put += bytes;
    stream_bytes(slot, source, bytes);
  };
  for (const size_t bytes : {size_t{2047}, size_t{2048}, size_t{4095}}) {
    std::vector<std::byte> payload(bytes);
    for (size_t i = 0; i < bytes; ++i) payload[i] = static_cast<std::byte>(1 + (i * 7 + bytes) % 251);
    first.enter(gather_of(bytes), bytes, payload.data(), bytes);
    second.enter(gather_of(bytes), bytes, nullptr, 0);
    EXPECT_TRUE(std::ranges::equal(payload, std::span(second.payload_of(0, bytes), bytes))) << bytes;
  }
  EXPECT_EQ(bytes_put, 2048 + 4095);
}

TEST(Lane, leaves_out_of_a_payload_what_no_peer_reads) {
  Pair lanes = Pair::make(1);
  const std::vector<std::byte> before(200, std::byte{1}), payload(200, std::byte{2});
  for (const ByteRange& own : {ByteRange{0, 80}, ByteRange{80, 70}, ByteRange{150, 50}, ByteRange{0, 200}}) {
    for (int call = 0; call < 2; ++call) {  // each writes one of the two boxes
      lanes.second.enter(gather_of(1), 5, before.data(), before.size());
      lanes.first.enter(gather_of(1), 5, nullptr, 0);
    }
    lanes.second.enter(gather_of(1), 5, payload.data(), payload.size(), own);
    lanes.first.enter(gather_of(1), 5, nullptr, 0);
    std::vector<std::byte> expected = payload;
    std::fill_n(expected.begin() + static_cast<ptrdiff_t>(own.offset), own.bytes, std::byte{1});
    EXPECT_TRUE(std::ranges::equal(expected, std::span(lanes.first.payload_of(1, payload.size()), payload.size())))
        << own.offset;
  }
}

TEST(Lane, disagrees_with_a_call_of_another_number_or_count) {
  Pair lanes = Pair::make(1);
  lanes.first.enter(gather_of(1), 5, nullptr, 0);
  lanes.second.enter(gather_of(1), 6, nullptr, 0);
  EXPECT_FALSE(lanes.first.agrees(1));
  lanes.first.enter(gather_of(1), 7, nullptr, 0);
  lanes.second.enter(gather_of(2), 7, nullptr, 0);
  EXPECT_FALSE(lanes.first.agrees(1));
}

TEST(Lane, carries_a_payload_of_a_line_and_of_a_mailbox) {
  Pair lanes = Pair::make(1);
  for (const size_t bytes : {1, 56, 57, 256}) {
    const std::vector<std::byte> payload(bytes, std::byte(bytes));
    lanes.second.enter(gather_of(bytes), bytes, payload.data(), bytes);
    lanes.first.enter(gather_of(bytes), bytes, nullptr, 0);
    EXPECT_EQ(std::memcmp(lanes.first.payload_of(1, bytes), payload.data(), bytes), 0) << bytes << " bytes";
  }
}

TEST(Lane, begins_with_another_peer_on_every_rank) {
  const Pair lanes = Pair::make(1);
  EXPECT_EQ(lanes.first.peer(1), 1);
  EXPECT_EQ(lanes.second.peer(1), 0);
}

}  // namespace
}  // namespace fccl::core
