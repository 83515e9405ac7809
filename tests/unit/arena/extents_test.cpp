// Compares Extents with an oracle that has a flag for each byte.
#include "arena/extents.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace fccl::core {
namespace {

constexpr size_t kBegin = 64;
constexpr size_t kEnd = 4096;

// Holds the state of each byte of the range, in the simplest way.
class Oracle {
 public:
  bool is_free(size_t offset, size_t bytes) const {
    for (size_t i = offset; i < offset + bytes; ++i)
      if (i < kBegin || i >= kEnd || taken_[i]) return false;
    return true;
  }
  void set(size_t offset, size_t bytes, bool taken) { std::fill_n(taken_.begin() + static_cast<long>(offset), bytes, taken); }
  // Returns sizes by offset.
  std::map<size_t, size_t> free_extents() const {
    std::map<size_t, size_t> found;
    for (size_t i = kBegin, begin = kBegin; i <= kEnd; ++i)
      if (i == kEnd || taken_[i]) {
        if (i > begin) found[begin] = i - begin;
        begin = i + 1;
      }
    return found;
  }
  // Returns an offset in the shortest free extent with room; the first of equally short ones.
  std::optional<size_t> best_fit(size_t bytes, size_t alignment) const {
    std::optional<size_t> best;
    size_t shortest = SIZE_MAX;
    for (const auto& [offset, length] : free_extents()) {
      const size_t aligned = (offset + alignment - 1) / alignment * alignment;
      if (aligned + bytes <= offset + length && length < shortest) {
        best = aligned;
        shortest = length;
      }
    }
    return best;
  }

 private:
  std::vector<bool> taken_ = std::vector<bool>(kEnd, false);
};

TEST(Extents, do_what_the_oracle_does_in_random_programs) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 generator(seed);
    const auto below = [&](size_t bound) { return static_cast<size_t>(generator()) % bound; };
    Extents extents(kBegin, kEnd);
    Oracle oracle;
    std::map<size_t, size_t> taken;
    size_t sum = 0;
    for (int step = 0; step < 300; ++step) {
      if (below(5) < 3) {
        const size_t bytes = 1 + below(below(4) == 0 ? 1500 : 100), alignment = size_t{1} << below(9);
        const auto offset = extents.take(bytes, alignment);
        ASSERT_EQ(offset, oracle.best_fit(bytes, alignment)) << "seed " << seed << ", step " << step;
        if (!offset) continue;
        ASSERT_TRUE(oracle.is_free(*offset, bytes));
        oracle.set(*offset, bytes, true);
        taken[*offset] = bytes;
        sum += bytes;
      } else if (!taken.empty()) {
        const auto victim = std::next(taken.begin(), static_cast<long>(below(taken.size())));
        const auto free = extents.give_back(victim->first);
        oracle.set(victim->first, victim->second, false);
        sum -= victim->second;
        ASSERT_TRUE(free);
        ASSERT_EQ(oracle.free_extents()[free->offset], free->bytes) << "seed " << seed << ", step " << step;
        taken.erase(victim);
      }
      ASSERT_EQ(extents.free_extents(), oracle.free_extents()) << "seed " << seed << ", step " << step;
      ASSERT_EQ(extents.taken(), sum);
    }
  }
}

TEST(Extents, refuse_what_was_not_taken_and_what_was_given_back) {
  Extents extents(kBegin, kEnd);
  const size_t offset = *extents.take(100, 1);
  EXPECT_FALSE(extents.give_back(offset + 1));
  EXPECT_EQ(extents.taken(), 100U);
  EXPECT_TRUE(extents.give_back(offset));
  EXPECT_FALSE(extents.give_back(offset));
  EXPECT_EQ(extents.taken(), 0U);
}

TEST(Extents, give_all_that_there_is_and_then_nothing) {
  Extents extents(kBegin, kEnd);
  EXPECT_FALSE(extents.take(kEnd - kBegin + 1, 1));
  EXPECT_TRUE(extents.take(kEnd - kBegin, 1));
  EXPECT_FALSE(extents.take(1, 1));
  EXPECT_EQ(extents.longest_free(), 0U);
}

}  // namespace
}  // namespace fccl::core
