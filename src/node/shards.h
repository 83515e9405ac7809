// What the reductions of a host have in common: who reduces which part, and the factors.
#pragma once

#include "node/phases.h"

namespace fccl {

// Which part of a vector that all ranks reduce together each of them reduces: equal ones, the last ones shorter.
inline Layout shards_of(const Signature& s, fcclDataType_t dtype, int ranks) {
  const size_t elements = (s.count + ranks - 1) / ranks;
  return Layout::of_many(elements * size_of(dtype), s.count * size_of(dtype));
}

// Every rank has entered.
inline void read_scalars(Lane& lane, const Signature& signature) {
  if (signature.op != ReduceOp::premul_sum) return;
  for (int rank = 0; rank < lane.ranks(); ++rank) lane.scalars[rank] = lane.record_of(rank).scalar;
}

}  // namespace fccl
