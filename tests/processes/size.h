// Size: how many ranks a test runs as, and what they are; the parameter of the tests of collectives.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "processes/ranks.h"

namespace fccl::core::testing {

struct Size {
  RanksAs as;
  int ranks;

  Launch launch() const { return {as, ranks}; }
};

inline std::vector<Size> sizes(int fewest, int most) {
  std::vector<Size> all;
  for (const RanksAs kind : every_kind())
    for (int ranks = fewest; ranks <= most; ++ranks) all.push_back({kind, ranks});
  return all;
}

// Tests that move much run after every change as one kind of ranks where there are more of them than most machines have cores,
// and as the other kind where ./dev test all runs them.
inline bool is_run_after_every_change(const Size& size) {
  return size.ranks <= 3 || (size.as == RanksAs::threads) == (size.ranks % 2 == 0);
}

inline std::vector<Size> sizes_after_every_change(int fewest, int most) {
  std::vector<Size> some = sizes(fewest, most);
  std::erase_if(some, [](const Size& size) { return !is_run_after_every_change(size); });
  return some;
}

inline std::vector<Size> other_sizes(int fewest, int most) {
  std::vector<Size> others = sizes(fewest, most);
  std::erase_if(others, is_run_after_every_change);
  return others;
}

inline std::string name_of_size(const ::testing::TestParamInfo<Size>& info) {
  return std::to_string(info.param.ranks) + "_" + name_of(info.param.as);
}

// The counts of elements of `size` bytes around a number of bytes at which the library changes its way, for the whole buffer
// and for a block of it per rank.
inline void add_counts_around(std::vector<size_t>& counts, size_t bytes, size_t size, int ranks) {
  for (const size_t middle : {bytes / size, bytes / size / ranks})
    for (const size_t count : {middle - std::min<size_t>(middle, 1), middle, middle + 1})
      if (std::find(counts.begin(), counts.end(), count) == counts.end()) counts.push_back(count);
}

}  // namespace fccl::core::testing
