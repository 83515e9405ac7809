// What tells one measured collective from another, as data: everything else is shared by the runner.
#pragma once

#include <cstddef>

#include "fccl/fccl.hpp"

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
  std::size_t recv_count;
  std::size_t in_place_send = 0;
  std::size_t in_place_recv = 0;
};

// Where an element of the result comes from: an index of one rank's input, or of every rank's, combined by the operator.
struct Origin {
  static constexpr int kEveryRank = -1;
  int rank;
  std::size_t index;
};

struct Operation {
  Source send;
  Target recv;
  Op op;
  int root;
  StreamRef stream;
};

struct Collective {
  bool reduces;
  bool rooted;
  // The layout for a larger buffer of at most `elements` elements of `element_bytes` each.
  Layout (*layout)(std::size_t elements, std::size_t element_bytes, Place place);
  Result<void> (*start)(Communicator& communicator, const Operation& operation);
  Origin (*origin)(const Layout& layout, Place place, std::size_t index);
  // Bus bandwidth over algorithm bandwidth: the part of the size column that must cross the slowest link.
  double (*bus_factor)(int ranks);
};

// One rank's block when `elements` are cut into one block per rank, a multiple of 16 bytes.
constexpr std::size_t block_of(std::size_t elements, std::size_t element_bytes, int ranks) {
  const std::size_t multiple = 16 / element_bytes;
  return elements / static_cast<std::size_t>(ranks) / multiple * multiple;
}

}  // namespace fccl::perf
