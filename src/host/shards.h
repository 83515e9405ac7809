// Shards: the division of a reduction among a host's ranks, and the factors of a pre-multiplied sum.
#pragma once

#include "base/layout.h"
#include "base/rounding.h"
#include "base/signature.h"
#include "host/lane.h"

namespace fccl::core {

// Returns the shard of a vector that each rank reduces: equal parts, the last ones shorter.
inline Layout shards_of(const Signature& s, fcclDataType_t dtype, int ranks) {
  const size_t elements = divided_up(s.count, static_cast<size_t>(ranks));
  return Layout::of_many(elements * size_of(dtype), s.count * size_of(dtype));
}

// Collects the ranks' factors. Every rank must have entered.
inline void read_scalars(Lane& lane, const Signature& signature) {
  if (signature.op != ReduceOp::premul_sum) return;
  for (int rank = 0; rank < lane.ranks(); ++rank) lane.scalars[rank] = lane.record_of(rank).scalar;
}

}  // namespace fccl::core
