// WireTask: one member's part of a call between hosts: the bytes that it sends to the others, and the places for theirs,
// described by Pieces and Buffer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/layout.h"
#include "base/signature.h"
#include "kernels/copy.h"
#include "kernels/reduce.h"
#include "plan/project.h"
#include "topology/columns.h"

namespace fccl::core {

// Says how a buffer of a call is cut: each of its blocks into pieces, one for each slice; a block that is shorter than the
// longest has no piece in the last slices.
struct Pieces {
  Layout blocks;
  int element_shift = 0;      // an element has 2^element_shift bytes
  size_t piece_elements = 1;  // in every piece except a block's last
  uint64_t slices = 0;

  size_t most_elements() const { return blocks.most() >> element_shift; }
  // Returns the elements of a block in a slice.
  size_t elements_of(int block, uint64_t slice) const { return elements_in(blocks.bytes(block), slice); }
  // Returns the elements of a block of `block_bytes` bytes in a slice.
  size_t elements_in(size_t block_bytes, uint64_t slice) const {
    const size_t whole = block_bytes >> element_shift;
    const size_t done = slice * piece_elements;
    return done < whole ? std::min(piece_elements, whole - done) : 0;
  }
};

// Says where pieces lie: in a buffer of the user, in its blocks; or in staging memory, which belongs to the InterHostCall, has
// room for a few slices, and holds the pieces of a slice side by side in the order of the column's blocks.
struct Buffer {
  std::byte* base = nullptr;
  Layout blocks;
  size_t piece_bytes = 0;
  uint64_t slices = 0;  // slices that there is memory for; 0: all
  size_t slice_bytes = 0;

  // Stands for staging memory of `slices` slices of `blocks` pieces, until the InterHostCall gives that memory.
  static Buffer staging(size_t piece_bytes, int blocks, uint64_t slices) {
    return {nullptr, {}, piece_bytes, slices, static_cast<size_t>(blocks) * piece_bytes};
  }

  bool is_staging() const { return slices > 0; }
  std::byte* at(int block, int place, uint64_t slice) const {
    if (is_staging()) return base + (slice % slices) * slice_bytes + static_cast<size_t>(place) * piece_bytes;
    return base + blocks.offset(block) + slice * piece_bytes;
  }
};

// One direction of a call: the blocks that move, and where they lie. For AlltoAll and AlltoAllV the two sides differ: a chunk
// is the blocks for one host, or from one. For other collectives both sides have the same blocks in the same pieces.
struct WireSide {
  const Blocks* blocks = nullptr;
  Pieces pieces;
  Buffer buffer;

  std::byte* at(int block, int place, uint64_t slice) const { return buffer.at(block, place, slice); }
  size_t elements_of(int block, uint64_t slice) const { return pieces.elements_of(block, slice); }
  // Returns the elements of all blocks of a chunk in a slice.
  size_t elements_of_chunk(int chunk, uint64_t slice) const {
    size_t elements = 0;
    for (const int block : blocks->of(chunk)) elements += elements_of(block, slice);
    return elements;
  }
};

// The user's buffers belong to the caller, until the call ends. The call, the plan, and the numbers of slices and of elements
// in a piece are the same for all members; the blocks are those of the column, and the addresses the member's own.
struct WireTask {
  CallInFull call;
  const plan::Steps* steps = nullptr;  // this member's; null: the payload travels with the entries
  int root = -1;                       // the member on the root's host
  bool by_dissemination = false;       // how the members tell each other of the call: as EntryRounds says
  // `input` is what the host contributes; the call puts data of other hosts, and sums, into `output`. If both are the user's
  // buffers, they may be the same memory.
  WireSide input;
  WireSide output;
  bool output_is_taken = true;  // the relay takes it out of staging memory, for the ranks; otherwise only the plan reads it
  CopyBytes put = copy_bytes;   // copies into the output
  size_t element_bytes = 1;
  size_t partial_bytes = 1;  // size of an element of a partial sum on the wire
  ReduceKernel total = nullptr;
  Scalar divisor;  // for `total`

  uint64_t slices() const { return input.pieces.slices; }
  // Returns the size of an element of what members give each other before it is added.
  size_t wire_element_bytes() const { return call.signature.row().reduces ? partial_bytes : element_bytes; }
};

}  // namespace fccl::core
