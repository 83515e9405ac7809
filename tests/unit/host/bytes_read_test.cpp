// Tests how many bytes a processor reads in a call, against counts by hand.
#include "host/bytes_read.h"

#include <gtest/gtest.h>

#include <array>
#include <ostream>

#include "base/call.h"

namespace fccl::core {
namespace {

constexpr int kRanks = 4;
constexpr size_t kCount = 100;
constexpr size_t kBytes = kCount * sizeof(float);

struct Way {
  const char* name;
  fcclColl_t collective;
  Route route;
  size_t read;  // in blocks of kBytes
  int root = -1;
  int rank = 1;
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

size_t read_in(const Way& way, bool in_place) {
  static std::array<std::byte, 2 * kRanks * kBytes> memory;
  Call call{{way.collective, fcclFloat32, ReduceOp::sum, way.root, kCount, Issuer::user}, memory.data(), memory.data()};
  if (!in_place) call.recv = memory.data() + kRanks * kBytes;
  return bytes_read(way.route, call, way.rank, kRanks);
}

class BytesRead : public ::testing::TestWithParam<Way> {};

TEST_P(BytesRead, are_those_of_every_copy_and_every_source) { EXPECT_EQ(read_in(GetParam(), false), GetParam().read * kBytes); }

using enum Path;
using enum Variant;
constexpr Way kWays[] = {
    // A block goes into the box, and four come out of boxes or the input.
    {"AllGatherByMailbox", fcclCollAllGather, {.path = mailbox}, 5},
    {"AllGatherByRing", fcclCollAllGather, {.path = ring}, 5},
    // Only into the output.
    {"AllGatherMapped", fcclCollAllGather, {.path = mapped}, 4},
    {"AllGatherByAttach", fcclCollAllGather, {.path = attach}, 4},
    {"BroadcastMapped", fcclCollBroadcast, {.path = mapped}, 1, 0},
    {"BroadcastByRing", fcclCollBroadcast, {.path = ring}, 1, 0},
    {"BroadcastByRingOfTheRoot", fcclCollBroadcast, {.path = ring}, 2, 0, 0},
    {"GatherByRing", fcclCollGather, {.path = ring}, 1, 0},
    {"GatherByRingOfTheRoot", fcclCollGather, {.path = ring}, 4, 0, 0},
    {"ScatterByRing", fcclCollScatter, {.path = ring}, 1, 0},
    {"ScatterByRingOfTheRoot", fcclCollScatter, {.path = ring}, 4, 0, 0},
    {"AlltoAllMapped", fcclCollAlltoAll, {.path = mapped}, 4},
    // Three blocks go into slots, and four are taken.
    {"AlltoAllByRing", fcclCollAlltoAll, {.path = ring}, 7},
    // Four blocks are added: every byte of the inputs is read by one rank.
    {"ReduceScatterMapped", fcclCollReduceScatter, {.path = mapped}, 4},
    {"ReduceScatterByRing", fcclCollReduceScatter, {.path = ring}, 7},
    {"ReduceScatterByMailbox", fcclCollReduceScatter, {.path = mailbox}, 8},
    {"AllReduceWhole", fcclCollAllReduce, {.path = mapped, .variant = whole}, 4},
    {"BarrierByMailbox", fcclCollBarrier, {.path = mailbox}, 0},
    // A call between hosts reads what the rank gives and takes.
    {"AllGatherAcross", fcclCollAllGather, {.path = across}, 5},
    {"ReduceScatterAcross", fcclCollReduceScatter, {.path = across}, 5},
};

INSTANTIATE_TEST_SUITE_P(Of, BytesRead, ::testing::ValuesIn(kWays),
                         [](const auto& way) { return std::string(way.param.name); });

TEST(BytesReadOfShards, are_a_whole_vector_to_add_and_what_goes_through_slots) {
  constexpr size_t kShard = kBytes / kRanks;
  Way way{"", fcclCollAllReduce, {.path = mapped, .variant = shards}, 0};
  EXPECT_EQ(read_in(way, false), kBytes + kBytes);
  way.route.to_outputs = true;
  EXPECT_EQ(read_in(way, false), kBytes + kBytes - kShard);
  way.route = {.path = ring, .variant = shards};
  EXPECT_EQ(read_in(way, false), kBytes - kShard + kBytes + kBytes);
  way.collective = fcclCollReduce;
  way.root = 0;
  EXPECT_EQ(read_in(way, false), kBytes - kShard + kBytes) << "only the root takes the result";
}

TEST(BytesReadInPlace, are_without_the_block_that_lies_there) {
  Way way{"", fcclCollBroadcast, {.path = ring}, 0, 0, 0};
  EXPECT_EQ(read_in(way, true), kBytes);
  way = {"", fcclCollAllGather, {.path = mapped}, 0, -1, 0};
  EXPECT_EQ(read_in(way, true), (kRanks - 1) * kBytes);
}

}  // namespace
}  // namespace fccl::core
