// Describes a measured collective as data: the runner shares everything else.
#pragma once

#include <algorithm>
#include <cstddef>

#include "fccl/fccl.hpp"
#include "uneven.h"

namespace fccl::perf {

// A rank's place in a call.
struct Place {
  int rank = 0;
  int ranks = 1;
  int root = 0;
};

// The number of elements that one call moves, and the places of its buffers. In place, both lie in one buffer, at these
// offsets.
struct Layout {
  std::size_t count;  // the call's argument, and the table's count column
  std::size_t send_count;
  std::size_t recv_count;  // zero on a rank without a result
  std::size_t in_place_send = 0;
  std::size_t in_place_recv = 0;
  const UnevenCounts* uneven = nullptr;  // set if blocks have counts of their own

  // Returns the number of elements in a block of the result.
  std::size_t block_count(std::size_t block) const {
    if (uneven == nullptr) return std::min(count, recv_count);
    return uneven->received.empty() ? recv_count : uneven->received[block];
  }
};

// The origin of a block of the result: one rank's input, or the inputs of all ranks, combined by the operator.
struct Origin {
  static constexpr int kEveryRank = -1;
  int rank;
  std::size_t first;  // index of the block's first element in the input
};

// One call as it is issued.
struct Operation {
  std::size_t count;  // the call's argument
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
  // True if the larger buffer holds one block of `count` elements per rank, false if it holds one block.
  bool has_blocks;
  // True if a call may leave its result in the buffer that it reads.
  bool works_in_place = true;
  // Requires a power of two as the number of ranks.
  bool wants_power_of_two = false;
  // Requires an even number of ranks.
  bool wants_pairs = false;
  // True if an MPI has one call that does the same.
  bool has_mpi_call = true;
  // Messages that a rank sends or receives in one call; the time shown is that of one of them.
  int messages = 1;
  Layout (*layout)(std::size_t count, Place place) = nullptr;
  Result<void> (*start)(Communicator& communicator, const Operation& operation);
  // Returns the origin of each block of the result.
  Origin (*origin)(const Layout& layout, Place place, std::size_t block);
  // Bus bandwidth over algorithm bandwidth: the part of the size column that must cross the slowest link.
  double (*bus_factor)(int ranks) = nullptr;
  // Replace layout and bus_factor if blocks have counts of their own.
  UnevenCounts (*counts)(Uneven uneven, std::size_t count, Place place) = nullptr;
  Layout (*uneven_layout)(const UnevenCounts& counts, std::size_t count, Place place) = nullptr;

  bool is_uneven() const { return counts != nullptr; }
};

// Returns the count of a call whose larger buffer has at most `elements` elements. A block is a multiple of 16 bytes, as in
// nccl-tests, or, if `odd`, an odd number of elements.
constexpr std::size_t count_of(const Collective& collective, std::size_t elements, std::size_t element_bytes, int ranks,
                               bool odd) {
  const std::size_t count = collective.has_blocks ? elements / static_cast<std::size_t>(ranks) : elements;
  if (odd) return count == 0 ? 0 : (count - 1) | 1;
  const std::size_t multiple = collective.has_blocks ? 16 / element_bytes : 1;
  return count / multiple * multiple;
}

// Returns the elements of the larger buffer.
constexpr std::size_t larger_count(const Collective& collective, std::size_t count, int ranks) {
  return collective.has_blocks ? count * static_cast<std::size_t>(ranks) : count;
}

// Returns the rank as far on in the other half.
constexpr int partner_of(int rank, int ranks) { return rank < ranks / 2 ? rank + ranks / 2 : rank - ranks / 2; }

constexpr double every_byte_once(int) { return 1.0; }
constexpr double all_but_own_block(int ranks) { return (ranks - 1.0) / ranks; }

}  // namespace fccl::perf
