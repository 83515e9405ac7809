// Tests which pairs of type and operator a command line comes to, and how sizes become counts.
#include "cases.h"

#include <gtest/gtest.h>

#include "call_memory.h"

namespace fccl::perf {
namespace {

constexpr Collective collective(bool reduces, bool has_blocks) {
  return {.collective = fcclCollAllReduce,
          .reduces = reduces,
          .rooted = false,
          .has_blocks = has_blocks,
          .layout = nullptr,
          .start = nullptr,
          .origin = nullptr,
          .bus_factor = nullptr};
}

Cases cases(bool reduces, const char* type, const char* op, const FcclLauncher* peer = nullptr) {
  Arguments arguments;
  arguments.type = type;
  arguments.op = op;
  return cases_of(arguments, collective(reduces, true), peer);
}

TEST(Cases, AllIsEveryTypeByEveryOperatorThatAppliesToIt) {
  EXPECT_EQ(cases(true, "all", "all").chosen.size(), 15u * 6 - 2);
  EXPECT_EQ(cases(true, "bool", "all").chosen.size(), 4u);
  EXPECT_EQ(cases(true, "all", "prod").chosen.size(), 15u);
}

TEST(Cases, WhatIsNamedIsNotLeftOut) { EXPECT_EQ(cases(true, "bool", "avg").chosen.size(), 1u); }

TEST(Cases, WithoutAReductionThereIsOneCasePerType) { EXPECT_EQ(cases(false, "all", "all").chosen.size(), 15u); }

TEST(Cases, TheLimitHasSumsOfFloatAlone) {
  Arguments arguments;
  arguments.measures_limit = true;
  arguments.type = "all";
  arguments.op = "all";
  const Cases found = cases_of(arguments, collective(true, false), nullptr);
  ASSERT_EQ(found.chosen.size(), 1u);
  EXPECT_EQ(found.chosen[0].type->name, "float");
  EXPECT_EQ(found.chosen[0].op->name, "sum");
  EXPECT_EQ(found.left_out.size(), 15u * 6 - 2 - 1);
}

TEST(Cases, WhatAPeerLacksIsLeftOutByName) {
  FcclLauncher launcher{};
  launcher.supports = [](int, int datatype, int) { return datatype != fcclFloat16; };
  const Cases found = cases(true, "half", "sum", &launcher);
  EXPECT_TRUE(found.chosen.empty());
  EXPECT_EQ(found.left_out, std::vector<std::string>{"sum of half"});
  EXPECT_EQ(cases(true, "float", "all", &launcher).left_out, std::vector<std::string>{"mulsum of float"});
}

TEST(Counts, ABlockIsAMultipleOfSixteenBytes) {
  EXPECT_EQ(count_of(collective(false, true), 100, 4, 3, false), 32u);
  EXPECT_EQ(count_of(collective(false, true), 2, 4, 2, false), 0u);
  EXPECT_EQ(count_of(collective(true, false), 100, 4, 3, false), 100u);
  EXPECT_EQ(larger_count(collective(false, true), 32, 3), 96u);
}

TEST(Counts, OddCountsAreOddAndFit) {
  EXPECT_EQ(count_of(collective(false, true), 100, 4, 3, true), 33u);
  EXPECT_EQ(count_of(collective(false, true), 64, 4, 2, true), 31u);
  EXPECT_EQ(count_of(collective(false, true), 1, 4, 2, true), 0u);
}

TEST(CallMemory, TheLastCallsHavePartsThatNoOtherCallUses) {
  HostMemory host;
  const CallMemory memory = *CallMemory::make(host, 1024, 0);
  const Parts small = memory.parts(64, 20, true);
  EXPECT_EQ(small.rotating, 16u);
  EXPECT_EQ(small.reserved, CallMemory::kMostReserved);
  EXPECT_EQ(small.part_of(0), 0u);
  EXPECT_EQ(small.part_of(16), 0u);
  EXPECT_EQ(small.part_of(18), 16u);
  EXPECT_EQ(small.part_of(19), 17u);
  const Parts largest = memory.parts(1024, 20, true);
  EXPECT_EQ(largest.part_of(18), 0u);
  EXPECT_EQ(largest.part_of(19), 1u);
  EXPECT_EQ(memory.parts(1024, 20, false).part_of(19), 0u);
}

TEST(CallMemory, WithoutRotationOnlyTheCheckedCallHasAPartOfItsOwn) {
  HostMemory host;
  const CallMemory memory = *CallMemory::make(host, 1024, 0, false);
  const Parts checked = memory.parts(64, 20, true);
  for (std::size_t call = 0; call < 19; ++call) EXPECT_EQ(checked.part_of(call), 0u);
  EXPECT_EQ(checked.part_of(19), 1u);
  EXPECT_EQ(memory.parts(64, 20, false).part_of(19), 0u);
}

TEST(CallMemory, APartInPlaceHasBothBuffersAtTheirOffsets) {
  HostMemory host;
  const CallMemory memory = *CallMemory::make(host, 1024, 3);
  const Layout layout{.count = 2, .send_count = 2, .recv_count = 4, .in_place_send = 2};
  const Buffers first = memory.buffers(layout, 4, 16, true, 0);
  EXPECT_EQ(first.send, first.recv + 8);
  EXPECT_EQ(memory.buffers(layout, 4, 16, true, 5).recv, first.recv + 80);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.recv) % 64, 3u);
  EXPECT_NE(memory.buffers(layout, 4, 16, false, 0).send, first.send);
  EXPECT_EQ(end_of(first, layout, 4, true), first.recv + 16);
}

}  // namespace
}  // namespace fccl::perf
