// Slices: the pieces that a long buffer is cut into to pass through slots.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/call.h"
#include "base/rounding.h"

namespace fccl::core {

// `total` bytes in pieces of `piece` bytes, the last one shorter. `piece` is a multiple of the size of the call's elements.
struct Slices {
  size_t total;
  size_t piece;

  uint64_t count() const { return divided_up(total, piece); }
  size_t offset(uint64_t slice) const { return slice * piece; }
  // Returns 0 past the end.
  size_t length(uint64_t slice) const { return offset(slice) < total ? std::min(piece, total - offset(slice)) : 0; }
};

// The blocks of a buffer, each cut into slices of `piece` bytes. All blocks send slice k at the same time; a block that is
// shorter than the longest ends earlier. A view of the user's buffer.
template <class Byte>
struct SlicedBlocks {
  Byte* base;
  Layout layout;
  size_t piece;

  // Returns the slices of the longest block.
  uint64_t count() const { return Slices{layout.most(), piece}.count(); }
  size_t longest_slice() const { return std::min<size_t>(layout.most(), piece); }
  // Returns the end of the block if the block has no such slice.
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

}  // namespace fccl::core
