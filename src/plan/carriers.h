// Carriers: which ranks of two hosts carry which part of a chunk from one host to the other.
//
// A member of a wire group is a host, and every rank of the host runs the host's steps for its part of each chunk: rank i of R
// carries the i-th of R equal parts. Where two hosts have equal numbers of ranks, rank i sends to rank i. Else the parts
// overlap:
//
//   a host of 3 ranks sends     |     0     |     1     |     2     |
//   a host of 2 ranks receives  |        0        |        1        |
//   pieces                      |   0->0    |1->0 |1->1 |   2->1    |
//
// Every rank sends as much as its neighbours, and receives as much. What a rank receives is what it sends on, adds, and owns:
// the chunk of a host in AllGather, ReduceScatter, Gather and Scatter is the blocks of its ranks, so its rank's block is its
// part.
#pragma once

#include <cstddef>
#include <vector>

namespace fccl::plan {

// A part of a chunk, in units of 1/(ranks of the sending host x ranks of the receiving host) of it.
struct Piece {
  int from_rank;
  int to_rank;
  int begin;
  int end;

  friend bool operator==(const Piece&, const Piece&) = default;
};

// All pieces of a chunk, in its order: at most one for each pair of ranks, and fewer than there are ranks on both hosts.
std::vector<Piece> pieces(int from_ranks, int to_ranks);

// The first element of part `part` of `parts` of so many elements; parts of unequal hosts that begin at the same place begin at
// the same element.
size_t first_element(size_t elements, int part, int parts);

}  // namespace fccl::plan
