// Tests that checking accepts right results and counts every wrong element.
#include "verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

namespace fccl::perf {
namespace {

constexpr std::size_t kRanks = 3;
constexpr std::size_t kBlock = 64;
constexpr Layout kGathered{.count = kBlock, .send_count = kBlock, .recv_count = kRanks * kBlock};
constexpr Layout kScattered{.count = kBlock, .send_count = kRanks * kBlock, .recv_count = kBlock};

constexpr Collective kGather{
    .reduces = false,
    .rooted = false,
    .layout = nullptr,
    .start = nullptr,
    .origin = [](const Layout& layout, Place,
                 std::size_t index) { return Origin{static_cast<int>(index / layout.count), index % layout.count}; },
    .bus_factor = nullptr};
constexpr Collective kScatter{.reduces = true,
                              .rooted = false,
                              .layout = nullptr,
                              .start = nullptr,
                              .origin =
                                  [](const Layout& layout, Place place, std::size_t index) {
                                    return Origin{Origin::kEveryRank,
                                                  layout.count * static_cast<std::size_t>(place.rank) + index};
                                  },
                              .bus_factor = nullptr};

Trial trial_of(const Collective& collective, const char* type, const char* op, std::size_t rank) {
  const Layout& layout = collective.reduces ? kScattered : kGathered;
  return {collective,
          *find_element_type(type),
          *find_operator(op),
          layout,
          {.rank = static_cast<int>(rank), .ranks = static_cast<int>(kRanks)},
          5};
}

// The inputs of all ranks, one after another, as elements of T.
template <class T>
std::vector<T> inputs(const Collective& collective, const char* type) {
  const std::size_t count = trial_of(collective, type, "sum", 0).layout.send_count;
  std::vector<T> all(kRanks * count);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    T* own = all.data() + rank * count;
    fill_input(trial_of(collective, type, "sum", rank), reinterpret_cast<std::byte*>(own));
  }
  return all;
}

template <class T>
std::uint64_t wrong(const Trial& trial, const std::vector<T>& result) {
  return count_wrong(trial, reinterpret_cast<const std::byte*>(result.data()));
}

// What `op` makes of the inputs for `rank`, computed in T.
template <class T>
std::vector<T> reduced(const char* type, std::string_view op, std::size_t rank) {
  const std::vector<T> all = inputs<T>(kScatter, type);
  std::vector<T> result(kBlock);
  for (std::size_t i = 0; i < kBlock; ++i) {
    const std::size_t index = rank * kBlock + i;
    const T a = all[index], b = all[index + kRanks * kBlock], c = all[index + 2 * kRanks * kBlock];
    if (op == "min") result[i] = std::min({a, b, c});
    if (op == "max") result[i] = std::max({a, b, c});
    if (op == "sum") result[i] = a + b + c;
    if (op == "avg") result[i] = (a + b + c) / static_cast<T>(kRanks);
  }
  return result;
}

TEST(Verify, TheInputsOneAfterAnotherAreARightGather) {
  EXPECT_EQ(wrong(trial_of(kGather, "int64", "sum", 1), inputs<std::int64_t>(kGather, "int64")), 0u);
  EXPECT_EQ(wrong(trial_of(kGather, "int8", "sum", 1), inputs<std::int8_t>(kGather, "int8")), 0u);
}

TEST(Verify, EveryChangedElementIsCounted) {
  auto result = inputs<std::int32_t>(kGather, "int32");
  result[0] ^= 1;
  result[kBlock] ^= 1 << 30;
  result[kRanks * kBlock - 1] ^= 1;
  EXPECT_EQ(wrong(trial_of(kGather, "int32", "sum", 0), result), 3u);
}

TEST(Verify, BlocksOfTwoRanksInterchangedAreWrongThroughout) {
  auto result = inputs<std::int64_t>(kGather, "int64");
  std::swap_ranges(result.begin(), result.begin() + kBlock, result.begin() + kBlock);
  EXPECT_EQ(wrong(trial_of(kGather, "int64", "sum", 0), result), 2 * kBlock);
}

TEST(Verify, TheResultOfAnotherIterationIsWrongThroughout) {
  Trial trial = trial_of(kGather, "int64", "sum", 0);
  trial.iteration = 6;
  EXPECT_EQ(wrong(trial, inputs<std::int64_t>(kGather, "int64")), kRanks * kBlock);
}

TEST(Verify, PoisonIsWrongThroughout) {
  for (const char* type : {"float", "double", "int32", "half", "bfloat16"}) {
    std::vector<std::byte> result(kBlock * 8);
    poison(result.data(), result.size());
    for (const char* op : {"sum", "min", "max", "avg"})
      EXPECT_EQ(wrong(trial_of(kScatter, type, op, 2), result), kBlock) << type << op;
  }
}

TEST(Verify, RightReductionsAreRightForEveryOperatorAndRank) {
  for (const char* op : {"sum", "min", "max", "avg"}) {
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(wrong(trial_of(kScatter, "float", op, rank), reduced<float>("float", op, rank)), 0u) << op;
      EXPECT_EQ(wrong(trial_of(kScatter, "double", op, rank), reduced<double>("double", op, rank)), 0u) << op;
      EXPECT_EQ(wrong(trial_of(kScatter, "int32", op, rank), reduced<std::int32_t>("int32", op, rank)), 0u) << op;
      EXPECT_EQ(wrong(trial_of(kScatter, "int64", op, rank), reduced<std::int64_t>("int64", op, rank)), 0u) << op;
    }
  }
}

TEST(Verify, ASumThatLacksOneRankIsWrong) {
  const std::vector<float> all = inputs<float>(kScatter, "float");
  std::vector<float> result(kBlock);
  for (std::size_t i = 0; i < kBlock; ++i) result[i] = all[i] + all[i + kRanks * kBlock];
  EXPECT_GT(wrong(trial_of(kScatter, "float", "sum", 0), result), kBlock / 2);
}

// Two ways to the same number: the bits of float16 and bfloat16 against the ones read from float.
TEST(Verify, SixteenBitInputsAreTheFloatsOfTheSameIntegers) {
  const auto floats = inputs<float>(kScatter, "float");
  const auto halves = inputs<std::uint16_t>(kScatter, "half");
  const auto brains = inputs<std::uint16_t>(kScatter, "bfloat16");
  for (std::size_t i = 0; i < floats.size(); ++i) {
    std::uint32_t bits = static_cast<std::uint32_t>(brains[i]) << 16;
    float brain;
    std::memcpy(&brain, &bits, sizeof brain);
    EXPECT_EQ(brain, floats[i]);
    const int exponent = (halves[i] >> 10) & 31, significand = halves[i] & 1023;
    const float magnitude = exponent == 0 ? 0.0f : std::ldexp(static_cast<float>(1024 + significand), exponent - 25);
    EXPECT_EQ(halves[i] & 0x8000 ? -magnitude : magnitude, floats[i]);
  }
}

}  // namespace
}  // namespace fccl::perf
