// Tests that every kind of loop of the limit gives the same bytes, wherever its memory begins and ends.
#include "peers/limit_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace fccl::perf {
namespace {

constexpr LoopKind kKinds[] = {LoopKind::plain, LoopKind::prefetched, LoopKind::streamed};
// Some lines, some pages, a few more than the streamed copy takes at a time.
constexpr std::size_t kCounts[] = {0, 1, 15, 16, 17, 1000, 4096, 9001};
constexpr std::size_t kShifts[] = {0, 1, 4, 60};
constexpr std::byte kPoison{0xa5};

float value_of(int rank, std::size_t i) { return static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 3) % 1000); }

// Floats that begin `shift` bytes behind the beginning of a page, with poison before and behind them.
class Floats {
 public:
  Floats(std::size_t count, std::size_t shift) : bytes_(count * sizeof(float)), memory_(3 * kPage + bytes_, kPoison) {
    const auto miss = reinterpret_cast<std::uintptr_t>(memory_.data()) % kPage;
    begin_ = 2 * kPage - miss + shift;
  }

  std::byte* begin() { return memory_.data() + begin_; }
  float at(std::size_t i) {
    float value;
    std::memcpy(&value, begin() + i * sizeof value, sizeof value);
    return value;
  }
  void put(std::size_t i, float value) { std::memcpy(begin() + i * sizeof value, &value, sizeof value); }
  bool has_poison_around() const {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      if ((i < begin_ || i >= begin_ + bytes_) && memory_[i] != kPoison) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kPage = 4096;
  std::size_t bytes_;
  std::vector<std::byte> memory_;
  std::size_t begin_ = 0;
};

Floats input(int rank, std::size_t count, std::size_t shift) {
  Floats made(count, shift);
  for (std::size_t i = 0; i < count; ++i) made.put(i, value_of(rank, i));
  return made;
}

std::size_t wrong_sums(Floats& found, int ranks, std::size_t count) {
  std::size_t wrong = found.has_poison_around() ? 0 : 1;
  for (std::size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += value_of(rank, i);
    if (found.at(i) != sum) ++wrong;
  }
  return wrong;
}

TEST(LimitLoops, EveryKindCopiesAllAndNoMore) {
  for (const LoopKind kind : kKinds) {
    for (const std::size_t count : kCounts) {
      for (const std::size_t shift : kShifts) {
        Floats from = input(0, count, 4);
        Floats to(count, shift);
        copy_as(kind, to.begin(), from.begin(), count * sizeof(float));
        EXPECT_EQ(wrong_sums(to, 1, count), 0u) << static_cast<int>(kind) << " " << count << " " << shift;
      }
    }
  }
}

TEST(LimitLoops, EveryKindSumsAllRanksAndNoMore) {
  for (const LoopKind kind : kKinds) {
    for (const int ranks : {1, 2, 3, 4, 7}) {
      for (const std::size_t count : kCounts) {
        for (const std::size_t shift : kShifts) {
          std::vector<Floats> inputs;
          inputs.reserve(static_cast<std::size_t>(ranks));
          for (int rank = 0; rank < ranks; ++rank) inputs.push_back(input(rank, count, shift));
          std::vector<const std::byte*> from(inputs.size());
          std::ranges::transform(inputs, from.begin(), [](Floats& each) { return each.begin(); });
          Floats to(count, shift);
          sum_as(kind, to.begin(), from.data(), ranks, count);
          EXPECT_EQ(wrong_sums(to, ranks, count), 0u) << static_cast<int>(kind) << " " << ranks << " " << count << " " << shift;
          // Into the last of the inputs.
          sum_as(kind, inputs.back().begin(), from.data(), ranks, count);
          EXPECT_EQ(wrong_sums(inputs.back(), ranks, count), 0u) << static_cast<int>(kind) << " " << ranks << " " << count;
        }
      }
    }
  }
}

TEST(LimitLoops, CallsBelowTheSizeTakePlainOnes) {
  const SizedLoop loop{LoopKind::streamed, 1 << 20};
  EXPECT_EQ(loop.of((1 << 20) - 1), LoopKind::plain);
  EXPECT_EQ(loop.of(1 << 20), LoopKind::streamed);
}

TEST(LimitLoops, TheChoiceSaysFromWhichSizeOnWhatIsTaken) {
  const LoopChoice choice{{LoopKind::prefetched, 256 << 10}, {LoopKind::streamed, 4 << 20}};
  EXPECT_EQ(choice.text(), "copies plain, from 256K prefetched; sums plain, from 4M streamed");
  EXPECT_EQ(LoopChoice{}.text(), "copies plain; sums plain");
}

}  // namespace
}  // namespace fccl::perf
