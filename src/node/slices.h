// Slices: how long buffers are cut to go through slots.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/call.h"

namespace fccl {

// `total` bytes in pieces of `piece` bytes, the last one shorter. A piece is a multiple of every element of the call.
struct Slices {
  size_t total;
  size_t piece;

  uint64_t count() const { return (total + piece - 1) / piece; }
  size_t offset(uint64_t slice) const { return slice * piece; }
  // Zero past the end.
  size_t length(uint64_t slice) const { return offset(slice) < total ? std::min(piece, total - offset(slice)) : 0; }
};

// The blocks of a buffer, each cut into slices of `piece` bytes: slice k of all blocks goes at the same time, and a block that
// is shorter than the longest ends earlier. A view; the buffer is the user's.
template <class Byte>
struct SlicedBlocks {
  Byte* base;
  Layout layout;
  size_t piece;

  // Of the longest block.
  uint64_t count() const { return Slices{layout.most(), piece}.count(); }
  size_t longest_slice() const { return std::min<size_t>(layout.most(), piece); }
  // Behind a block that has ended it is the block's end.
  Byte* at(int block, uint64_t slice) const {
    return base + layout.offset(block) + std::min<size_t>(slice * piece, layout.bytes(block));
  }
  size_t length(int block, uint64_t slice) const { return Slices{layout.bytes(block), piece}.length(slice); }
};

using SlicedInput = SlicedBlocks<const std::byte>;
using SlicedOutput = SlicedBlocks<std::byte>;

inline SlicedInput input_of(const Call& call, int ranks, size_t piece) {
  return {static_cast<const std::byte*>(call.send), call.input(ranks), piece};
}
inline SlicedOutput output_of(const Call& call, int ranks, size_t piece) {
  return {static_cast<std::byte*>(call.recv), call.output(ranks), piece};
}

}  // namespace fccl
