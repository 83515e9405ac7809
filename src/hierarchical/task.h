// WireTask: one member's part of a call between hosts: which bytes it has to bring to the others, and where theirs go; and what
// says where they lie, Pieces and Buffer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/layout.h"
#include "hierarchical/columns.h"
#include "kernels/copy.h"
#include "kernels/reduce.h"
#include "plan/catalog.h"
#include "plan/project.h"
#include "wire/entry.h"

namespace fccl {

// How a buffer of a call is cut: each of its blocks into pieces, one for each slice; a block that is shorter than the longest
// has none in the last slices.
struct Pieces {
  Layout blocks;
  int element_shift = 0;      // an element has 2^element_shift bytes
  size_t piece_elements = 1;  // of every piece but the last of a block
  uint64_t slices = 0;

  size_t most_elements() const { return blocks.most() >> element_shift; }
  // Of a block in a slice.
  size_t elements_of(int block, uint64_t slice) const { return elements_in(blocks.bytes(block), slice); }
  // Of a block of so many bytes.
  size_t elements_in(size_t block_bytes, uint64_t slice) const {
    const size_t whole = block_bytes >> element_shift;
    const size_t done = slice * piece_elements;
    return done < whole ? std::min(piece_elements, whole - done) : 0;
  }
};

// Where pieces lie: in a buffer of the user, in its blocks; or in staging memory, which has room for a few slices, and in which
// the pieces of a slice lie side by side in the order of the column's blocks.
struct Buffer {
  std::byte* base = nullptr;
  Layout blocks;
  size_t piece_bytes = 0;
  uint64_t slices = 0;  // for which there is memory; 0: for all
  size_t slice_bytes = 0;

  bool is_staging() const { return slices > 0; }
  std::byte* at(int block, int place, uint64_t slice) const {
    if (is_staging()) return base + (slice % slices) * slice_bytes + static_cast<size_t>(place) * piece_bytes;
    return base + blocks.offset(block) + slice * piece_bytes;
  }
};

// What goes out of a member's memory, or what comes into it. Where every pair of ranks has a block of its own a chunk is the
// blocks for one host, or from one; else both sides have the same blocks in the same pieces.
struct WireSide {
  const Blocks* blocks = nullptr;
  Pieces pieces;
  Buffer buffer;

  std::byte* at(int block, int place, uint64_t slice) const { return buffer.at(block, place, slice); }
  size_t elements_of(int block, uint64_t slice) const { return pieces.elements_of(block, slice); }
};

// The memory belongs to the caller, until the call ends. The call, the plan, the numbers of slices and elements in a piece are
// the same for all members; the blocks are each column's and the addresses each member's own.
struct WireTask {
  CallInFull call;
  const plan::Steps* steps = nullptr;  // of this member; null: what there is travels beside the entries
  int root = -1;                       // the member on the root's host
  // What the host contributes is read from `input`; what comes from others or is added is put into `output`. Where both are the
  // user's they may be the same memory.
  WireSide input;
  WireSide output;
  bool output_is_taken = true;  // by the relay, out of staging memory, for the ranks; else only the plan reads it
  CopyBytes put = copy_bytes;   // into the output
  size_t element_bytes = 1;
  size_t partial_bytes = 1;  // of an element of a partial sum, on the wire
  ReduceKernel total = nullptr;
  Scalar divisor;  // for `total`

  uint64_t slices() const { return input.pieces.slices; }
};

}  // namespace fccl
