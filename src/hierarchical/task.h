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

// How the buffer of a call is cut: into blocks of equal numbers of elements, the last ones shorter, and each block into pieces,
// one for each slice.
struct Pieces {
  size_t elements = 0;        // of all blocks
  size_t block_elements = 0;  // of every block but the last ones
  size_t piece_elements = 1;  // of every piece but the last of a block
  uint64_t slices = 0;

  // Where the blocks lie in the buffer.
  Layout layout(size_t element_bytes) const {
    return Layout::of_many(block_elements * element_bytes, elements * element_bytes);
  }
  // Of a block in a slice.
  size_t elements_of(int block, uint64_t slice) const {
    const size_t before = static_cast<size_t>(block) * block_elements;
    const size_t whole = before < elements ? std::min(block_elements, elements - before) : 0;
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

// The memory belongs to the caller, until the call ends. The call, the pieces, the plan and the sizes are the same for
// all members; the blocks are each column's and the addresses each member's own.
struct WireTask {
  CallInFull call;
  const Blocks* blocks = nullptr;
  Pieces pieces;
  const plan::Steps* steps = nullptr;  // of this member; null: what there is travels beside the entries
  int root = -1;                       // the member on the root's host
  // What the host contributes is read from `input`; what comes from others or is added is put into `output`. Where both are the
  // user's they may be the same memory.
  Buffer input;
  Buffer output;
  bool output_is_taken = true;  // by the relay, out of staging memory, for the ranks; else only the plan reads it
  CopyBytes put = copy_bytes;   // into the output
  size_t element_bytes = 1;
  size_t partial_bytes = 1;  // of an element of a partial sum, on the wire
  ReduceKernel total = nullptr;
  Scalar divisor;  // for `total`
};

}  // namespace fccl
