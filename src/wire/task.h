// WireTask: a call with what every wire phase needs to run one member's part of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/call.h"
#include "kernels/reduce.h"
#include "plan/catalog.h"
#include "plan/project.h"
#include "wire/entry.h"

namespace fccl {

// Where a member's chunks lie: chunk c at (c - first) strides behind `base`, for those chunks that the plan reads or writes
// there.
struct Chunks {
  std::byte* base = nullptr;
  int first = 0;
  size_t stride = 0;

  std::byte* at(int chunk) const { return base + static_cast<size_t>(chunk - first) * stride; }
};

// The memory belongs to the caller, until the phase ends. All sizes, the steps and the call are the same for all members; the
// addresses are each member's own.
struct WireTask {
  CallInFull call;
  const plan::Steps* steps = nullptr;  // of this member
  // Of every chunk, save that `total_bytes` end within the last ones.
  size_t chunk_bytes = 0;
  size_t total_bytes = 0;
  // What the member contributes is read from `input`, all that comes from others or is reduced is put into `output`. They may
  // be the same memory.
  Chunks input;
  Chunks output;
  // The chunks, around the group, that are copied from input to output.
  int copied_first = 0;
  int copied = 0;
  int root = -1;  // the member whose rank is the call's root
  ReduceKernel reduce = nullptr;
  // At least into so many slices a chunk is cut.
  int least_slices = 1;

  size_t bytes_of(int chunk) const {
    const size_t begin = static_cast<size_t>(chunk) * chunk_bytes;
    return begin < total_bytes ? std::min(chunk_bytes, total_bytes - begin) : 0;
  }
};

// Of a call whose ranks are the members of the group: one rank per host. For the caller to add: steps and reduce.
WireTask flat_task(const Call& call, uint64_t number, plan::Group group, int me, plan::Cut cut);

}  // namespace fccl
