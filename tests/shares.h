// Shares: the counts of a collective whose blocks have counts of their own, and where its blocks lie, as the tests draw them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "oracle.h"

namespace fccl::core::testing {

// How uneven the counts are: any up to the largest, some of them zero; growing with the rank; one rank's alone; all but one
// rank's; equal.
enum class Shares : uint8_t { random, linear, one_has_all, one_has_none, equal };
inline constexpr std::array kEveryShares{Shares::random, Shares::linear, Shares::one_has_all, Shares::one_has_none,
                                         Shares::equal};
inline const char* name_of(Shares shares) {
  constexpr const char* kNames[] = {"random", "linear", "one_has_all", "one_has_none", "equal"};
  return kNames[static_cast<int>(shares)];
}

// Equal on all ranks. `count` is that of every block in a collective of equal counts, else of the longest.
struct Counts {
  fcclColl_t collective = fcclCollBarrier;
  int ranks = 1;
  size_t count = 0;
  Shares shares = Shares::random;
  bool is_displaced = false;  // blocks in reverse order with gaps between them, where displacements may be given
  int iteration = 0;

  // Elements of the block that comes from a rank and is for another; of a collective that gives or takes one block, the other
  // rank does not matter.
  size_t of(int from, int to) const {
    if (!is_uneven(collective)) return count;
    const int owner = gives_blocks(collective) && !takes_blocks(collective) ? to : from;
    const int chosen = iteration % ranks;
    switch (shares) {
      case Shares::linear:
        return count * static_cast<size_t>((owner + (exchanges(collective) ? 2 * to : 0)) % ranks + 1) /
               static_cast<size_t>(ranks);
      case Shares::one_has_all:
        return owner == chosen ? count : 0;
      case Shares::one_has_none:
        return owner == chosen ? 0 : count;
      case Shares::equal:
        return count;
      case Shares::random:
        break;
    }
    uint64_t x =
        static_cast<uint64_t>(iteration) * 131 + static_cast<uint64_t>(exchanges(collective) ? from * ranks + to : owner);
    x = (x + 1) * 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ULL;
    x ^= x >> 32;
    return x % 4 == 0 ? 0 : (x / 4) % (count + 1);
  }
  size_t sent(int rank, int block) const { return gives_blocks(collective) ? of(rank, block) : of(rank, rank); }
  size_t received(int rank, int block) const { return takes_blocks(collective) ? of(block, rank) : of(rank, rank); }
};

// The blocks of one buffer, in elements.
struct BlocksOfBuffer {
  std::vector<size_t> counts, offsets;
  size_t extent = 0;  // with the gaps

  size_t total() const { return std::accumulate(counts.begin(), counts.end(), size_t{0}); }
  bool has_gaps() const { return extent != total(); }
};

inline BlocksOfBuffer blocks_of(const std::vector<size_t>& counts, bool is_displaced) {
  BlocksOfBuffer blocks{counts, std::vector<size_t>(counts.size()), 0};
  for (size_t i = 0; i < counts.size(); ++i) {
    const size_t block = is_displaced ? counts.size() - 1 - i : i;
    if (is_displaced) blocks.extent += 1 + block % 3;
    blocks.offsets[block] = blocks.extent;
    blocks.extent += counts[block];
  }
  return blocks;
}

inline BlocksOfBuffer input_of_rank(const Counts& counts, int rank) {
  std::vector<size_t> each;
  for (int block = 0; block < input_blocks(counts.collective, counts.ranks); ++block) each.push_back(counts.sent(rank, block));
  return blocks_of(each, counts.is_displaced && counts.collective == fcclCollAlltoAllV);
}

inline BlocksOfBuffer output_of_rank(const Counts& counts, int rank) {
  std::vector<size_t> each;
  for (int block = 0; block < output_blocks(counts.collective, counts.ranks); ++block)
    each.push_back(counts.received(rank, block));
  return blocks_of(each, counts.is_displaced && is_uneven(counts.collective) && takes_blocks(counts.collective));
}

}  // namespace fccl::core::testing
