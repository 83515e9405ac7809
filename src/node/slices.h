// Slices: how a long buffer is cut to go through slots.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace fccl {

// `total` bytes in pieces of `piece` bytes, the last one shorter. A piece is a multiple of 64 bytes, so of every element.
struct Slices {
  size_t total;
  size_t piece;

  uint64_t count() const { return (total + piece - 1) / piece; }
  size_t offset(uint64_t slice) const { return slice * piece; }
  // Zero past the end.
  size_t length(uint64_t slice) const { return offset(slice) < total ? std::min(piece, total - offset(slice)) : 0; }
};

}  // namespace fccl
