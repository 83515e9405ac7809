// Tests that checking accepts right results and counts every wrong element.
#include "verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace fccl::perf {
namespace {

constexpr std::size_t kRanks = 3;
constexpr std::size_t kBlock = 64;
constexpr Layout kGathered{.count = kBlock, .send_count = kBlock, .recv_count = kRanks * kBlock};
constexpr Layout kScattered{.count = kBlock, .send_count = kRanks * kBlock, .recv_count = kBlock};

constexpr Collective kGather{
    .collective = fcclCollAllGather,
    .reduces = false,
    .rooted = false,
    .has_blocks = true,
    .layout = nullptr,
    .start = nullptr,
    .origin = [](const Layout&, Place, std::size_t block) { return Origin{static_cast<int>(block), 0}; },
    .bus_factor = nullptr};
constexpr Collective kScatter{
    .collective = fcclCollReduceScatter,
    .reduces = true,
    .rooted = false,
    .has_blocks = true,
    .layout = nullptr,
    .start = nullptr,
    .origin = [](const Layout& layout, Place place,
                 std::size_t) { return Origin{Origin::kEveryRank, layout.count * static_cast<std::size_t>(place.rank)}; },
    .bus_factor = nullptr};

const Samples& samples_of(const char* type, const char* op, std::size_t ranks) {
  static std::map<std::tuple<std::string, std::string, std::size_t>, Samples> made;
  return made.try_emplace({type, op, ranks}, *find_element_type(type), *find_operator(op), static_cast<int>(ranks))
      .first->second;
}

Trial trial_of(const Collective& collective, const char* type, const char* op, std::size_t rank) {
  const Layout& layout = collective.reduces ? kScattered : kGathered;
  return {collective,
          *find_element_type(type),
          *find_operator(op),
          collective.reduces ? &samples_of(type, op, kRanks) : nullptr,
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

// What `op` makes of the inputs for `rank`, computed in T. Integers are unsigned here, so that they wrap.
template <class T>
std::vector<T> reduced(const char* type, const std::string& op, std::size_t rank) {
  const Trial trial = trial_of(kScatter, type, op.c_str(), rank);
  std::vector<T> all(kRanks * trial.layout.send_count);
  for (std::size_t from = 0; from < kRanks; ++from) {
    T* own = all.data() + from * trial.layout.send_count;
    fill_input(trial_of(kScatter, type, op.c_str(), from), reinterpret_cast<std::byte*>(own));
  }
  std::vector<T> result(kBlock);
  for (std::size_t i = 0; i < kBlock; ++i) {
    const std::size_t index = rank * kBlock + i;
    const T a = all[index], b = all[index + kRanks * kBlock], c = all[index + 2 * kRanks * kBlock];
    if (op == "min") result[i] = std::min({a, b, c});
    if (op == "max") result[i] = std::max({a, b, c});
    if (op == "sum") result[i] = static_cast<T>(a + (b + c));
    if (op == "prod") result[i] = static_cast<T>(a * (b * c));
    if (op == "mulsum") result[i] = static_cast<T>((c + a) + (b + b));
    if (op == "avg") result[i] = static_cast<T>((a + b + c) / static_cast<T>(kRanks));
  }
  return result;
}

TEST(Verify, TheInputsOneAfterAnotherAreARightGather) {
  EXPECT_EQ(wrong(trial_of(kGather, "int64", "sum", 1), inputs<std::int64_t>(kGather, "int64")), 0u);
  EXPECT_EQ(wrong(trial_of(kGather, "int8", "sum", 1), inputs<std::int8_t>(kGather, "int8")), 0u);
  EXPECT_EQ(wrong(trial_of(kGather, "bool", "sum", 1), inputs<std::uint8_t>(kGather, "bool")), 0u);
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
  trial.number = 6;
  EXPECT_EQ(wrong(trial, inputs<std::int64_t>(kGather, "int64")), kRanks * kBlock);
}

TEST(Verify, PoisonIsWrongThroughout) {
  for (const char* type : {"float", "double", "int32", "half", "bfloat16"}) {
    std::vector<std::byte> result(kBlock * 8);
    poison(result.data(), result.size());
    for (const char* op : {"sum", "prod", "min", "max", "avg", "mulsum"})
      EXPECT_EQ(wrong(trial_of(kScatter, type, op, 2), result), kBlock) << type << op;
  }
}

TEST(Verify, RightReductionsOfFloatsAreRightInAnyOrder) {
  for (const char* op : {"sum", "prod", "min", "max", "avg", "mulsum"}) {
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(wrong(trial_of(kScatter, "float", op, rank), reduced<float>("float", op, rank)), 0u) << op;
      EXPECT_EQ(wrong(trial_of(kScatter, "double", op, rank), reduced<double>("double", op, rank)), 0u) << op;
    }
  }
}

TEST(Verify, SumsAndProductsOfIntegersWrap) {
  for (const char* op : {"sum", "prod", "mulsum"}) {
    EXPECT_EQ(wrong(trial_of(kScatter, "int8", op, 1), reduced<std::uint8_t>("int8", op, 1)), 0u) << op;
    EXPECT_EQ(wrong(trial_of(kScatter, "uint32", op, 1), reduced<std::uint32_t>("uint32", op, 1)), 0u) << op;
    EXPECT_EQ(wrong(trial_of(kScatter, "int32", op, 1), reduced<std::uint32_t>("int32", op, 1)), 0u) << op;
    EXPECT_EQ(wrong(trial_of(kScatter, "int64", op, 1), reduced<std::uint64_t>("int64", op, 1)), 0u) << op;
  }
}

TEST(Verify, IntegersAreComparedByTheirSign) {
  for (const char* op : {"min", "max"}) {
    EXPECT_EQ(wrong(trial_of(kScatter, "int16", op, 0), reduced<std::int16_t>("int16", op, 0)), 0u) << op;
    EXPECT_EQ(wrong(trial_of(kScatter, "uint64", op, 0), reduced<std::uint64_t>("uint64", op, 0)), 0u) << op;
  }
}

TEST(Verify, AveragesOfIntegersTruncateAndDoNotWrap) {
  EXPECT_EQ(wrong(trial_of(kScatter, "int8", "avg", 0), reduced<std::int8_t>("int8", "avg", 0)), 0u);
  EXPECT_EQ(wrong(trial_of(kScatter, "uint32", "avg", 0), reduced<std::uint32_t>("uint32", "avg", 0)), 0u);
  EXPECT_EQ(wrong(trial_of(kScatter, "int64", "avg", 0), reduced<std::int64_t>("int64", "avg", 0)), 0u);
}

TEST(Verify, ASumOfBooleansIsOrAndAProductIsAnd) {
  for (const auto& [op, ones] : {std::pair("sum", false), std::pair("prod", true)}) {
    const auto all = reduced<std::uint8_t>("bool", op, 0);  // 0 to 3 for a sum, 0 or 1 for a product
    std::vector<std::uint8_t> result(kBlock);
    std::transform(all.begin(), all.end(), result.begin(), [](std::uint8_t each) { return each > 0; });
    EXPECT_EQ(wrong(trial_of(kScatter, "bool", op, 0), result), 0u) << op;
    EXPECT_EQ(std::count(result.begin(), result.end(), ones ? 0 : 1) > 0, true);
  }
}

// Sums of 200 ranks of the smallest type: what every rank adds must leave room for the others.
TEST(Verify, ManyRanksDoNotMakeASumInexact) {
  for (const char* type : {"f8e4m3", "f8e5m2", "half", "bfloat16"}) {
    for (const std::string op : {"sum", "mulsum"}) {
      const ElementType& element = *find_element_type(type);
      const Samples& samples = samples_of(type, op.c_str(), 200);
      for (std::size_t sample = 0; sample < Samples::kCount; ++sample) {
        double total = 0, magnitudes = 0;
        for (int rank = 0; rank < 200; ++rank) {
          const double value = decode(samples.inputs(rank)[sample], element.datatype) * (op == "mulsum" ? scalar_of(rank) : 1);
          total += value;
          magnitudes += std::fabs(value);
        }
        ASSERT_EQ(decode(samples.results()[sample], element.datatype), total) << type << op;
        ASSERT_LE(magnitudes, std::ldexp(1.0, range_of(element.datatype).max_exponent)) << type << op;
      }
    }
  }
}

TEST(Verify, ASumThatLacksOneRankIsWrong) {
  const std::vector<float> all = inputs<float>(kScatter, "float");
  std::vector<float> result(kBlock);
  for (std::size_t i = 0; i < kBlock; ++i) result[i] = all[i] + all[i + kRanks * kBlock];
  EXPECT_GT(wrong(trial_of(kScatter, "float", "sum", 0), result), kBlock / 2);
}

}  // namespace
}  // namespace fccl::perf
