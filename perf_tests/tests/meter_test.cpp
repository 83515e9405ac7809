// Tests that faults of a measured library show as wrong elements, with libraries of one rank that have one fault each.
#include "meter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fccl::perf {
namespace {

constexpr Collective kAllReduce{
    .collective = fcclCollAllReduce,
    .reduces = true,
    .rooted = false,
    .has_blocks = false,
    .layout = [](std::size_t count, Place) { return Layout{.count = count, .send_count = count, .recv_count = count}; },
    .start = nullptr,
    .origin = [](const Layout&, Place, std::size_t) { return Origin{Origin::kEveryRank, 0}; },
    .bus_factor = every_byte_once};

// Sums over one rank, which is a copy. Calls are counted from 0: one untimed, the timed ones, one checked.
class CopyLibrary : public Library {
 public:
  Result<void> choose(const ElementType&, const Operator&) override { return {}; }
  Result<Traffic> traffic(const Collective&) const override {
    return Traffic{{0, static_cast<std::uint64_t>(calls), 1000}, copied_per_call * static_cast<std::uint64_t>(calls)};
  }
  Result<void> start(const Collective&, const Operation& operation) override {
    const std::size_t bytes = operation.send.count * sizeof(float);
    auto* recv = static_cast<std::byte*>(operation.recv.data);
    const int call = calls++;
    results.push_back(recv);
    if (call == lost_call) return {};
    if (operation.recv.data != operation.send.data) std::memcpy(recv, operation.send.data, bytes);
    if (call == long_call) std::memset(recv + bytes, 0, 3);
    if (call == flipped_call) recv[bytes - 1] ^= std::byte{1};
    if (call == late_call && call > 0) std::memcpy(recv, last_result_.data(), bytes);
    if (call == inexact_call) {
      float first;
      std::memcpy(&first, recv, sizeof first);
      first = std::nextafter(std::nextafter(first, 2.0f), 2.0f);
      std::memcpy(recv, &first, sizeof first);
    }
    last_result_.assign(recv, recv + bytes);
    return {};
  }
  Result<void> finish() override { return {}; }

  int calls = 0;
  std::uint64_t copied_per_call = 0;
  std::vector<const std::byte*> results;  // where each call put its own
  int lost_call = -1;                     // leaves recv as it was
  int flipped_call = -1;                  // changes one bit
  int long_call = -1;                     // writes three bytes too many
  int late_call = -1;                     // gives the result of the call before
  int inexact_call = -1;                  // is two units in the last place off

 private:
  std::vector<std::byte> last_result_;
};

constexpr int kIterations = 5;
constexpr std::size_t kCount = 16;

// The measurement of `library` by sums of `count` floats, out of place.
Measurement measure(CopyLibrary& library, std::size_t count, Arguments arguments) {
  arguments.iterations = kIterations;
  const auto processes = Processes::start({"", 1}, false);
  Team team(*processes, {}, 1);
  const std::vector<Case> cases{{find_element_type("float"), find_operator("sum")}};
  const Run run{arguments, kAllReduce, cases, team, {}, "meter_test", {}};
  const Samples samples(*cases[0].type, *cases[0].op, 1);
  HostMemory memory;
  return Meter(run, 0, library, memory)
      .measure({*cases[0].type, *cases[0].op, &samples, {}, kAllReduce.layout(count, {}), count * sizeof(float)}, false);
}

// Where `max_count` floats are the largest size.
Measurement measure(CopyLibrary& library, std::size_t max_count = kCount, bool ulp = false) {
  Arguments arguments;
  arguments.max_bytes = max_count * sizeof(float);
  arguments.ulp = ulp;
  return measure(library, kCount, arguments);
}

TEST(Meter, ARightLibraryHasNoWrongElements) {
  CopyLibrary library;
  EXPECT_EQ(measure(library).wrong, 0u);
  EXPECT_EQ(library.calls, 1 + kIterations + 1);
}

TEST(Meter, TheTrafficIsThatOfTheTimedCalls) {
  CopyLibrary library;
  library.copied_per_call = 96;
  const Measurement measured = measure(library);
  EXPECT_EQ(measured.path, fcclMetricsPathName(1));
  EXPECT_EQ(measured.copied, 96.0);
}

TEST(Meter, OneWrongBitInTheCheckedCallIsOneWrongElement) {
  CopyLibrary library;
  library.flipped_call = kIterations + 1;
  EXPECT_EQ(measure(library).wrong, 1u);
}

TEST(Meter, EveryByteBehindTheBufferThatTheCheckedCallWritesIsWrong) {
  for (const std::size_t max_count : {kCount, 100 * kCount}) {
    CopyLibrary library;
    library.long_call = kIterations + 1;
    EXPECT_EQ(measure(library, max_count).wrong, 3u);
  }
}

TEST(Meter, OneWrongBitInTheLastTimedCallIsOneWrongElement) {
  for (const std::size_t max_count : {kCount, 100 * kCount}) {
    CopyLibrary library;
    library.flipped_call = kIterations;
    EXPECT_EQ(measure(library, max_count).wrong, 1u);
  }
}

TEST(Meter, ALostTimedCallIsWrongThroughout) {
  for (const std::size_t max_count : {kCount, 100 * kCount}) {
    CopyLibrary library;
    library.lost_call = kIterations;
    EXPECT_EQ(measure(library, max_count).wrong, kCount);
  }
}

TEST(Meter, AStaleResultIsWrong) {
  CopyLibrary library;
  library.late_call = kIterations;
  EXPECT_GT(measure(library).wrong, kCount / 2);
}

TEST(Meter, TheErrorIsInUnitsInTheLastPlace) {
  CopyLibrary right;
  EXPECT_EQ(measure(right, kCount, true).ulp, 0.0);
  CopyLibrary inexact;
  inexact.inexact_call = 1 + kIterations + 1;
  EXPECT_EQ(measure(inexact, kCount, true).ulp, 2.0);
}

constexpr std::size_t kPartFloats = 2048;
constexpr std::size_t kParts = 4;  // and one for each of the last two calls

// Measures calls on buffers that peers map, of `count` floats each.
Measurement measure_mapped(CopyLibrary& library, std::size_t count, bool mapped = true) {
  Arguments arguments;
  arguments.max_bytes = kParts * kPartFloats * sizeof(float);
  arguments.in_arena = mapped;
  return measure(library, count, arguments);
}

TEST(Meter, BuffersThatPeersMapAreUsedThroughoutBeforeTheClockStarts) {
  CopyLibrary library;
  EXPECT_EQ(measure_mapped(library, kPartFloats).wrong, 0u);
  std::vector<std::ptrdiff_t> parts(library.results.size());
  std::ranges::transform(library.results, parts.begin(), [&](const std::byte* result) {
    return (result - library.results[2]) / static_cast<std::ptrdiff_t>(kPartFloats * sizeof(float));
  });
  EXPECT_EQ(parts,
            (std::vector<std::ptrdiff_t>{4, 5, 0, 1, 2, 3, /* untimed */ 0, /* timed */ 0, 1, 2, 4, 5, /* checked */ 0}));
}

TEST(Meter, PrivateBuffersAndThoseOfSmallCallsAreNotUsedBeforeTheClockStarts) {
  for (const bool mapped : {false, true}) {
    CopyLibrary library;
    EXPECT_EQ(measure_mapped(library, mapped ? kPartFloats / 2 : kPartFloats, mapped).wrong, 0u);
    EXPECT_EQ(library.calls, 1 + kIterations + 1) << mapped;
  }
}

TEST(Meter, ALostTimedCallOnABufferThatWasUsedBeforeIsWrongThroughout) {
  CopyLibrary library;
  library.lost_call = 6 + kIterations;
  EXPECT_EQ(measure_mapped(library, kPartFloats).wrong, kPartFloats);
}

TEST(Meter, TheTimeIsPositiveAndGivesTheBandwidth) {
  CopyLibrary library;
  const Measurement measured = measure(library);
  EXPECT_GT(measured.seconds, 0);
  EXPECT_DOUBLE_EQ(measured.algorithm_bandwidth, kCount * sizeof(float) / measured.seconds);
}

}  // namespace
}  // namespace fccl::perf
