// Call: one collective as the user asked for it.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/collective.h"
#include "base/dtype.h"
#include "base/layout.h"
#include "base/signature.h"
#include "fccl/fccl.h"

namespace fccl::core {

// One rank's call: the signature, and the arguments that belong to this rank alone.
struct Call {
  Signature signature;
  const void* send = nullptr;
  void* recv = nullptr;
  Scalar scalar = {};                    // this rank's factor of a pre-multiplied sum
  const UnevenBlocks* uneven = nullptr;  // set if blocks have counts of their own; owned by the issuer

  // Return where the blocks of a buffer lie when `ranks` ranks take part.
  Layout input(int ranks) const {
    return uneven != nullptr ? uneven->input.layout() : layout(signature.row().input, signature.bytes(), ranks);
  }
  Layout output(int ranks) const {
    return uneven != nullptr ? uneven->output.layout() : layout(signature.row().output, signature.result_bytes(), ranks);
  }
  // Returns the bytes of the call as nccl-tests counts them.
  size_t larger_buffer(int ranks) const { return std::max(input(ranks).total(), output(ranks).total()); }

 private:
  static Layout layout(Extent extent, size_t block, int ranks) {
    return extent == Extent::one_block ? Layout::of_one(block) : Layout::of_many(block, block * static_cast<size_t>(ranks));
  }
};

// Makes an internal AllGather that exchanges `bytes` bytes per rank.
inline Call exchange_of(Issuer issuer, const void* mine, void* all, size_t bytes) {
  return {{fcclCollAllGather, fcclUint8, ReduceOp::sum, -1, bytes, issuer}, mine, all};
}

}  // namespace fccl::core
