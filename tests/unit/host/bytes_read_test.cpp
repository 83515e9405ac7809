// Tests how many bytes a processor reads in a call, against counts by hand.
#include "host/bytes_read.h"

#include <gtest/gtest.h>

#include <array>
#include <ostream>

#include "base/call.h"

namespace fccl::core {
namespace {

constexpr int kReaders = 4;
constexpr size_t kElementsRead = 100;
constexpr size_t kBlockRead = kElementsRead * sizeof(float);

struct ReadCall {
  const char* name;
  fcclColl_t collective;
  Route route;
  size_t read;  // in blocks of kBlockRead
  int root = -1;
  int rank = 1;
};

void PrintTo(const ReadCall& way, std::ostream* out) { *out << way.name; }

size_t read_in(const ReadCall& way, bool in_place, int ranks = kReaders) {
  static std::array<std::byte, 2 * kReaders * kBlockRead> memory;
  Call call{{way.collective, fcclFloat32, ReduceOp::sum, way.root, kElementsRead, Issuer::user}, memory.data(), memory.data()};
  if (!in_place) call.recv = memory.data() + kReaders * kBlockRead;
  return bytes_read(way.route, call, way.rank, ranks);
}

class BytesRead : public ::testing::TestWithParam<ReadCall> {};

TEST_P(BytesRead, are_those_of_every_copy_and_every_source) {
  EXPECT_EQ(read_in(GetParam(), false), GetParam().read * kBlockRead);
}

constexpr ReadCall kReadCalls[] = {
    // A block goes into the box, and four come out of boxes or the input.
    {"AllGatherByMailbox", fcclCollAllGather, {.path = Path::mailbox}, 5},
    {"AllGatherByRing", fcclCollAllGather, {.path = Path::ring}, 5},
    // A root that takes reads its own block where it lies.
    {"GatherByMailbox", fcclCollGather, {.path = Path::mailbox}, 1, 0},
    {"GatherByMailboxOfTheRoot", fcclCollGather, {.path = Path::mailbox}, 4, 0, 0},
    {"ReduceByMailbox", fcclCollReduce, {.path = Path::mailbox}, 1, 0},
    {"ReduceByMailboxOfTheRoot", fcclCollReduce, {.path = Path::mailbox}, 4, 0, 0},
    {"AllReduceByMailbox", fcclCollAllReduce, {.path = Path::mailbox}, 5},
    // A block goes only into the output.
    {"AllGatherMapped", fcclCollAllGather, {.path = Path::mapped}, 4},
    {"AllGatherByAttach", fcclCollAllGather, {.path = Path::attach}, 4},
    {"BroadcastMapped", fcclCollBroadcast, {.path = Path::mapped}, 1, 0},
    {"BroadcastByRing", fcclCollBroadcast, {.path = Path::ring}, 1, 0},
    {"BroadcastByRingOfTheRoot", fcclCollBroadcast, {.path = Path::ring}, 2, 0, 0},
    {"GatherByRing", fcclCollGather, {.path = Path::ring}, 1, 0},
    {"GatherByRingOfTheRoot", fcclCollGather, {.path = Path::ring}, 4, 0, 0},
    {"ScatterByRing", fcclCollScatter, {.path = Path::ring}, 1, 0},
    {"ScatterByRingOfTheRoot", fcclCollScatter, {.path = Path::ring}, 4, 0, 0},
    {"AlltoAllMapped", fcclCollAlltoAll, {.path = Path::mapped}, 4},
    // Three blocks go into slots, and four are taken.
    {"AlltoAllByRing", fcclCollAlltoAll, {.path = Path::ring}, 7},
    // Four blocks are added: every byte of the inputs is read by one rank.
    {"ReduceScatterMapped", fcclCollReduceScatter, {.path = Path::mapped}, 4},
    {"ReduceScatterByRing", fcclCollReduceScatter, {.path = Path::ring}, 7},
    {"ReduceScatterByMailbox", fcclCollReduceScatter, {.path = Path::mailbox}, 7},
    {"AlltoAllByMailbox", fcclCollAlltoAll, {.path = Path::mailbox}, 7},
    {"ScatterByMailboxOfTheRoot", fcclCollScatter, {.path = Path::mailbox}, 4, 0, 0},
    {"AllReduceWhole", fcclCollAllReduce, {.path = Path::mapped, .variant = Variant::whole}, 4},
    {"BarrierByMailbox", fcclCollBarrier, {.path = Path::mailbox}, 0},
    // A call between hosts reads what the rank gives and takes.
    {"AllGatherAcross", fcclCollAllGather, {.path = Path::across}, 5},
    {"ReduceScatterAcross", fcclCollReduceScatter, {.path = Path::across}, 5},
};

INSTANTIATE_TEST_SUITE_P(Of, BytesRead, ::testing::ValuesIn(kReadCalls),
                         [](const auto& way) { return std::string(way.param.name); });

TEST(BytesReadOfShards, are_a_whole_vector_to_add_and_what_goes_through_slots) {
  constexpr size_t kShardRead = kBlockRead / kReaders;
  ReadCall way{"", fcclCollAllReduce, {.path = Path::mapped, .variant = Variant::shards}, 0};
  EXPECT_EQ(read_in(way, false), kBlockRead + kBlockRead);
  way.route.to_outputs = true;
  EXPECT_EQ(read_in(way, false), kBlockRead + kBlockRead - kShardRead);
  way.route = {.path = Path::ring, .variant = Variant::shards};
  EXPECT_EQ(read_in(way, false), kBlockRead - kShardRead + kBlockRead + kBlockRead);
  way.collective = fcclCollReduce;
  way.root = 0;
  EXPECT_EQ(read_in(way, false), kBlockRead - kShardRead + kBlockRead) << "only the root takes the result";
}

TEST(BytesReadOfTwo, are_a_vector_that_a_rank_puts_and_two_that_it_adds) {
  ReadCall way{"", fcclCollAllReduce, {.path = Path::ring, .variant = Variant::of_two}, 0, -1, 0};
  EXPECT_EQ(read_in(way, false, 2), 3 * kBlockRead);
  way.collective = fcclCollReduce;
  way.root = 0;
  EXPECT_EQ(read_in(way, false, 2), 2 * kBlockRead) << "the root adds";
  way.rank = 1;
  EXPECT_EQ(read_in(way, false, 2), kBlockRead) << "the other rank puts";
}

TEST(BytesReadInPlace, are_without_the_block_that_lies_there) {
  ReadCall way{"", fcclCollBroadcast, {.path = Path::ring}, 0, 0, 0};
  EXPECT_EQ(read_in(way, true), kBlockRead);
  way = {"", fcclCollAllGather, {.path = Path::mapped}, 0, -1, 0};
  EXPECT_EQ(read_in(way, true), (kReaders - 1) * kBlockRead);
}

}  // namespace
}  // namespace fccl::core
