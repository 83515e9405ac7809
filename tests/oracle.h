// The oracle: what each collective means, in words of the tests' own: which blocks of whose inputs make each block of an
// output.
#pragma once

#include <vector>

#include "fccl/fccl.h"

namespace fccl::core::testing {

// The properties that tell collectives apart. The library's own table is not used here: it is what the tests are about.
inline bool reduces(fcclColl_t c) {
  return c == fcclCollAllReduce || c == fcclCollReduce || c == fcclCollReduceScatter || c == fcclCollReduceScatterV;
}
inline bool only_root_gives(fcclColl_t c) { return c == fcclCollBroadcast || c == fcclCollScatter; }
inline bool only_root_takes(fcclColl_t c) { return c == fcclCollReduce || c == fcclCollGather; }
inline bool exchanges(fcclColl_t c) { return c == fcclCollAlltoAll || c == fcclCollAlltoAllV; }
inline bool gives_blocks(fcclColl_t c) {
  return c == fcclCollReduceScatter || c == fcclCollReduceScatterV || c == fcclCollScatter || exchanges(c);
}
inline bool takes_blocks(fcclColl_t c) {
  return c == fcclCollAllGather || c == fcclCollAllGatherV || c == fcclCollGather || exchanges(c);
}
inline bool is_uneven(fcclColl_t c) { return c == fcclCollAllGatherV || c == fcclCollReduceScatterV || c == fcclCollAlltoAllV; }

inline bool has_root(fcclColl_t c) { return only_root_gives(c) || only_root_takes(c); }
inline bool gives(fcclColl_t c, int rank, int root) { return c != fcclCollBarrier && (!only_root_gives(c) || rank == root); }
inline bool takes(fcclColl_t c, int rank, int root) { return c != fcclCollBarrier && (!only_root_takes(c) || rank == root); }

// Blocks of a buffer, on a rank that has one.
inline int input_blocks(fcclColl_t c, int ranks) { return gives_blocks(c) ? ranks : 1; }
inline int output_blocks(fcclColl_t c, int ranks) { return takes_blocks(c) ? ranks : 1; }

// A block of a rank's input.
struct Source {
  int rank;
  int block;
};

// The sources of block `block` of the output of `rank`: ranks whose values are added, or the only rank. None: it has no output.
inline std::vector<Source> sources_of(fcclColl_t c, int rank, int block, int ranks, int root) {
  std::vector<Source> sources;
  for (int from = 0; takes(c, rank, root) && from < ranks; ++from)
    if (gives(c, from, root) && (!takes_blocks(c) || from == block)) sources.push_back({from, gives_blocks(c) ? rank : 0});
  return sources;
}

}  // namespace fccl::core::testing
