// What tells one measured collective from another, as data: everything else is shared by the runner.
#pragma once

#include <cstddef>

#include "fccl/fccl.hpp"
#include "uneven.h"

namespace fccl::perf {

// Where a rank stands in a call.
struct Place {
  int rank = 0;
  int ranks = 1;
  int root = 0;
};

// How many elements one call moves and where its buffers lie. In place, both lie in one buffer, at these offsets.
struct Layout {
  std::size_t count;  // what the call is told, and the table's count column
  std::size_t send_count;
  std::size_t recv_count;  // zero on a rank that gets nothing
  std::size_t in_place_send = 0;
  std::size_t in_place_recv = 0;
  const UnevenCounts* uneven = nullptr;  // where blocks have counts of their own

  // Of a block of the result.
  std::size_t block_count(std::size_t block) const {
    if (uneven == nullptr) return count;
    return uneven->received.empty() ? recv_count : uneven->received[block];
  }
};

// Where a block of the result comes from: from one rank's input, or from every rank's, combined by the operator.
struct Origin {
  static constexpr int kEveryRank = -1;
  int rank;
  std::size_t first;  // index of the block's first element in the input
};

// One call as it is issued.
struct Operation {
  std::size_t count;  // what the call is told
  Source send;
  Target recv;
  Op op;
  int root;
  StreamRef stream;
  const UnevenCounts* uneven = nullptr;
};

struct Collective {
  fcclColl_t collective;
  bool reduces;
  bool rooted;
  // The larger buffer holds one block of `count` elements per rank, not just one of `count`.
  bool has_blocks;
  // Whether a call may be told to leave its result in the buffer that it reads.
  bool works_in_place = true;
  // Of the number of ranks.
  bool wants_power_of_two = false;
  Layout (*layout)(std::size_t count, Place place) = nullptr;
  Result<void> (*start)(Communicator& communicator, const Operation& operation);
  // Of each block of the result.
  Origin (*origin)(const Layout& layout, Place place, std::size_t block);
  // Bus bandwidth over algorithm bandwidth: the part of the size column that must cross the slowest link.
  double (*bus_factor)(int ranks) = nullptr;
  // Where blocks have counts of their own, in the place of layout and bus_factor.
  UnevenCounts (*counts)(Uneven uneven, std::size_t count, Place place) = nullptr;
  Layout (*uneven_layout)(const UnevenCounts& counts, std::size_t count, Place place) = nullptr;

  bool is_uneven() const { return counts != nullptr; }
};

// The count of a call whose larger buffer has at most `elements` elements. A block is a multiple of 16 bytes, as in nccl-tests,
// or, if `odd`, an odd number of elements.
constexpr std::size_t count_of(const Collective& collective, std::size_t elements, std::size_t element_bytes, int ranks,
                               bool odd) {
  const std::size_t count = collective.has_blocks ? elements / static_cast<std::size_t>(ranks) : elements;
  if (odd) return count == 0 ? 0 : (count - 1) | 1;
  const std::size_t multiple = collective.has_blocks ? 16 / element_bytes : 1;
  return count / multiple * multiple;
}

// Elements of the larger buffer.
constexpr std::size_t larger_count(const Collective& collective, std::size_t count, int ranks) {
  return collective.has_blocks ? count * static_cast<std::size_t>(ranks) : count;
}

constexpr double every_byte_once(int) { return 1.0; }
constexpr double all_but_own_block(int ranks) { return (ranks - 1.0) / ranks; }

}  // namespace fccl::perf
