// Tests of a segment: no parts overlap, it stays small, and each process maps it once.
#include "segment/segment.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "os/memory.h"
#include "segment/lane_board.h"
#include "segment/rank_state.h"
#include "segment/slot_ring.h"
#include "segment/transfer_board.h"

namespace {

volatile sig_atomic_t signals = 0;
int tries = 0;
constexpr int kMostTries = 100;

}  // namespace

// Replaces the C library's function. Behaves like older kernels, which give up reserving memory on a signal; reserving takes 5
// ms here.
extern "C" int fallocate(int descriptor, int mode, off_t offset, off_t bytes) {
  const int before = signals;
  if (++tries < kMostTries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (signals != before) {
      errno = EINTR;
      return -1;
    }
  }
  return static_cast<int>(::syscall(SYS_fallocate, descriptor, mode, offset, bytes));
}

namespace fccl::core {
namespace {

constexpr size_t kMailboxBytes = 4096;
constexpr size_t kSlotBytes = 256 * 1024;

struct Region {
  const std::byte* begin;
  size_t bytes;
};

Region region_of(const void* begin, size_t bytes) { return {static_cast<const std::byte*>(begin), bytes}; }

// Lists all memory that some rank may write.
std::vector<Region> regions_of(const Segment& segment) {
  const SegmentShape& shape = segment.shape();
  std::vector<Region> regions{region_of(&segment.failure(), sizeof(FirstFailure))};
  for (int rank = 0; rank < shape.ranks; ++rank) {
    regions.push_back(region_of(&segment.state(rank), sizeof(RankState)));
    for (const LaneId lane : lanes_from(kGatherLane)) {
      regions.push_back(region_of(&segment.board(rank, lane), sizeof(LaneBoard)));
      for (const int parity : {0, 1}) {
        regions.push_back({segment.payload(rank, lane, parity), shape.box_bytes()});
        regions.push_back({segment.long_payload(rank, lane, parity), shape.long_box_bytes()});
      }
      regions.push_back({segment.gather_ring(rank, lane), shape.gather_ring_bytes()});
    }
    for (int peer = 0; peer < shape.ranks; ++peer)
      if (peer != rank) regions.push_back({segment.pair_ring(rank, peer), shape.pair_ring_bytes()});
    for (int peer = 0; peer < shape.ranks; ++peer) {
      regions.push_back(region_of(&segment.transfer_board(rank, peer), sizeof(TransferBoard)));
      for (int slot = 0; slot < TransferBoard::kEagerSlots; ++slot)
        regions.push_back({segment.eager_slot(rank, peer, slot), shape.eager_bytes()});
      regions.push_back({segment.transfer_ring(rank, peer), shape.transfer_ring_bytes()});
    }
  }
  return regions;
}

std::shared_ptr<Segment> segment_of(const SegmentShape& shape) {
  const auto memory = Segment::make(shape);
  EXPECT_TRUE(memory) << memory.error().message;
  const auto segment = Segment::map(*memory, shape);
  EXPECT_TRUE(segment) << segment.error().message;
  return *segment;
}

class SegmentLayout : public ::testing::TestWithParam<int> {
 protected:
  static SegmentShape shape() { return {GetParam(), kMailboxBytes, kSlotBytes}; }
};

TEST_P(SegmentLayout, gives_every_part_bytes_of_its_own) {
  const auto segment = segment_of(shape());
  auto regions = regions_of(*segment);
  std::sort(regions.begin(), regions.end(), [](const Region& a, const Region& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < regions.size(); ++i) ASSERT_LE(regions[i - 1].begin + regions[i - 1].bytes, regions[i].begin);
  const std::byte* start = regions.front().begin;
  EXPECT_EQ(start, reinterpret_cast<const std::byte*>(&segment->failure()));
  EXPECT_LE(regions.back().begin + regions.back().bytes, start + shape().total_bytes());
}

TEST_P(SegmentLayout, begins_every_part_at_a_cache_line) {
  for (const Region& region : regions_of(*segment_of(shape()))) ASSERT_EQ(reinterpret_cast<uintptr_t>(region.begin) % 64, 0U);
}

TEST_P(SegmentLayout, stays_under_8_MiB_per_rank) { EXPECT_LT(shape().total_bytes(), GetParam() * (size_t{8} << 20)); }

TEST_P(SegmentLayout, has_pair_slots_of_whole_lines_that_fit_a_gather_slot) {
  EXPECT_EQ(shape().pair_slot_bytes() % 64, 0U);
  EXPECT_GE(shape().pair_slot_bytes(), 64U);
  EXPECT_LE(shape().pair_slot_bytes(), shape().slot_bytes);
}

TEST_P(SegmentLayout, keeps_every_slice_of_a_ring_apart_from_the_one_before) {
  for (const size_t longest : {size_t{0}, size_t{1}, size_t{64}, size_t{65}, shape().slot_bytes - 64, shape().slot_bytes}) {
    const SlotRing ring(shape().gather_ring_bytes(), longest);
    for (uint64_t slice = 1; slice < 3 * ring.places; ++slice) {
      const size_t before = ring.offset(slice - 1), here = ring.offset(slice);
      ASSERT_EQ(here % 64, 0U);
      ASSERT_LE(here + longest, shape().gather_ring_bytes());
      ASSERT_GE(std::max(before, here) - std::min(before, here), std::max<size_t>(longest, 1)) << longest;
    }
  }
}

TEST_P(SegmentLayout, keeps_slices_of_any_lengths_apart_from_the_one_before) {
  const size_t ring = shape().transfer_ring_bytes(), longest = shape().transfer_slot_bytes();
  ASSERT_GE(ring, 3 * longest);
  SliceCursor cursor;
  size_t before = 0, size_before = 0;
  for (size_t slice = 0; slice < 1000; ++slice) {
    const size_t size = 1 + slice * 7919 % longest, here = cursor.offset(ring, size);
    ASSERT_EQ(here % 64, 0U);
    ASSERT_LE(here + size, ring);
    ASSERT_TRUE(here >= before + size_before || here + size <= before) << slice;
    cursor.pass(ring, size);
    before = here;
    size_before = size;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, SegmentLayout, ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 33, 64),
                         [](const auto& info) { return std::to_string(info.param) + "_ranks"; });

TEST(SegmentShape, has_longer_boxes_for_two_ranks) {
  const auto box_of = [](int ranks) { return SegmentShape{ranks, 4096, 64}.box_bytes(); };
  EXPECT_EQ(box_of(1), 4096);
  EXPECT_EQ(box_of(2), 8192);
  EXPECT_EQ(box_of(3), 4096);
  EXPECT_EQ(box_of(1000), 4096);
}

TEST(SegmentShape, has_longer_boxes_where_ranks_outnumber_processors) {
  const auto box_of = [](int ranks, size_t mailbox_bytes) { return SegmentShape{ranks, mailbox_bytes, 64}.long_box_bytes(); };
  EXPECT_EQ(box_of(2, 4096), 32768);
  EXPECT_EQ(box_of(1000, 4096), 32768);
  EXPECT_EQ(box_of(5, 32768), 65536);
  EXPECT_EQ(box_of(2, 65536), 131072);
}

TEST(Lanes, of_calls_that_need_pair_slots_are_those_that_have_them) {
  for (int c = 0; c < fcclCollSend; ++c) {
    const auto collective = static_cast<fcclColl_t>(c);
    EXPECT_EQ(lane_of(collective), row_of(collective).needs_pair_slots() ? kPairLane : kGatherLane) << name_of(collective);
  }
  EXPECT_EQ(lane_of(fcclCollReduceScatter), kPairLane);
  EXPECT_EQ(lane_of(fcclCollAlltoAll), kPairLane);
  EXPECT_EQ(lane_of(fcclCollScatter), kGatherLane);
}

TEST(Lanes, from_one_of_them_are_all_and_it_is_the_first) {
  for (const LaneId first : {kGatherLane, kPairLane}) {
    auto lanes = lanes_from(first);
    EXPECT_EQ(lanes.front(), first);
    std::sort(lanes.begin(), lanes.end());
    EXPECT_EQ(lanes, lanes_from(kGatherLane));
  }
}

TEST(Segment, mapped_twice_in_a_process_is_one_mapping) {
  const SegmentShape shape{2, 64, 64};
  const auto memory = Segment::make(shape);
  ASSERT_TRUE(memory);
  const auto first = Segment::map(*memory, shape), second = Segment::map(*memory, shape);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->get(), second->get());
}

TEST(Segment, takes_little_memory_until_a_call_uses_its_slots) {
  const SegmentShape shape{2, kMailboxBytes, kSlotBytes};
  const auto memory = Segment::make(shape);
  ASSERT_TRUE(memory);
  const auto mapped = Segment::map(*memory, shape);
  ASSERT_TRUE(mapped);
  (*mapped)->initialise(1);
  const auto kept = [&memory] {
    struct stat state{};
    EXPECT_EQ(fstat(memory->get(), &state), 0);
    return static_cast<size_t>(state.st_blocks) * 512;
  };
  EXPECT_LT(kept(), shape.total_bytes() / 8);
  std::memset((*mapped)->gather_ring(0, kGatherLane), 1, shape.gather_ring_bytes());
  EXPECT_GE(kept(), shape.gather_ring_bytes());
}

// Signals come as often as from a profiler.
TEST(Segment, is_made_though_signals_come_all_the_time) {
  ::signal(SIGALRM, [](int) { signals = signals + 1; });
  const itimerval often{{0, 1000}, {0, 1000}};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &often, nullptr), 0);
  tries = 0;
  EXPECT_TRUE(Segment::make({2, kMailboxBytes, kSlotBytes}));
  EXPECT_LT(tries, kMostTries);
  const itimerval never{};
  EXPECT_EQ(::setitimer(ITIMER_REAL, &never, nullptr), 0);
}

TEST(Segment, of_other_memory_is_another_mapping) {
  const SegmentShape shape{2, 64, 64};
  const auto first = segment_of(shape), second = segment_of(shape);
  EXPECT_NE(first.get(), second.get());
  EXPECT_NE(&first->failure(), &second->failure());
}

TEST(Segment, can_be_mapped_again_after_the_last_holder_has_gone) {
  const SegmentShape shape{2, 64, 64};
  const auto memory = Segment::make(shape);
  ASSERT_TRUE(memory);
  (*Segment::map(*memory, shape))->payload(1, kGatherLane, 0)[3] = std::byte{77};
  EXPECT_EQ((*Segment::map(*memory, shape))->payload(1, kGatherLane, 0)[3], std::byte{77});
}

TEST(Segment, of_another_size_than_expected_is_refused) {
  const auto memory = Segment::make({2, 64, 64});
  ASSERT_TRUE(memory);
  const auto mapped = Segment::map(*memory, {2, 64, 65536});
  ASSERT_FALSE(mapped);
  EXPECT_EQ(mapped.error().code, fcclInternalError);
}

TEST(Segment, larger_than_the_memory_is_an_error_that_says_what_is_needed_and_what_there_is) {
  const SegmentShape shape{2, 64, size_t{1} << 45};
  const auto memory = Segment::make(shape);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code, fcclSystemError);
  const std::string &text = memory.error().message, setting = "FCCL_SLOT_BYTES=" + std::to_string(shape.slot_bytes);
  for (const std::string& part : {std::to_string(shape.total_bytes()), available_memory().limited_by, setting})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Segment, begins_with_no_failure_and_words_below_the_first_sequence) {
  const auto segment = segment_of({3, 64, 64});
  segment->initialise(10);
  EXPECT_EQ(segment->failure().first.load(), 0);
  for (int rank = 0; rank < 3; ++rank)
    for (const Box& box : segment->board(rank, kPairLane).boxes) EXPECT_EQ(box.word.load(), uint64_t{9} << 32);
}

TEST(CallRecord, gives_back_what_was_written) {
  const CallRecord::Value written{
      0xfffffff7, {fcclCollReduce, fcclBfloat16, ReduceOp::premul_sum, 63, size_t{1} << 40}, {0x1234}};
  CallRecord record;
  record.write(written);
  const CallRecord::Value read = record.read();
  EXPECT_EQ(read.number, written.number);
  EXPECT_EQ(describe(read.signature), describe(written.signature));
  EXPECT_EQ(read.signature.root, 63);
  EXPECT_EQ(read.scalar.bits, 0x1234U);
}

TEST(CallRecord, keeps_a_root_below_zero) {
  CallRecord record;
  record.write({1, {fcclCollAllGather, fcclInt8, ReduceOp::sum, -1, 5}, {}});
  EXPECT_EQ(record.read().signature.root, -1);
  EXPECT_EQ(record.read().signature.collective, fcclCollAllGather);
}

}  // namespace
}  // namespace fccl::core
