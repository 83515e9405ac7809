// The meaning of a collective for the chunks of its plan, and whose memory they lie in; by the tests' own oracle.
#pragma once

#include <vector>

#include "oracle.h"
#include "plan/check.h"

namespace fccl::core::plan {

// A barrier is an AllGather without bytes: who has every chunk has heard of every member.
inline fcclColl_t meant_by(const Trial& trial) {
  return trial.collective == fcclCollBarrier ? fcclCollAllGather : trial.collective;
}

inline bool is_chunk(const Trial& trial, int chunk) { return chunk < (trial.cut == Cut::whole ? 1 : trial.group.members); }

// True if the member contributes the chunk. A buffer of one block is cut into chunks, else a chunk is a block.
inline bool brings(const Trial& trial, int m, int chunk) {
  const fcclColl_t c = meant_by(trial);
  return is_chunk(trial, chunk) && testing::gives(c, m, trial.group.root) &&
         (!testing::takes_blocks(c) || testing::exchanges(c) || chunk == m);
}

// The members whose chunk, or the sum of whose chunks, the member must have at the end; none where anything is right.
inline std::vector<int> wanted(const Trial& trial, int m, int chunk) {
  const fcclColl_t c = meant_by(trial);
  std::vector<int> members;
  if (!is_chunk(trial, chunk) || (testing::gives_blocks(c) && !testing::exchanges(c) && chunk != m)) return members;
  const int block = testing::takes_blocks(c) ? chunk : 0;
  for (const testing::Source& source : testing::sources_of(c, m, block, trial.group.members, trial.group.root))
    members.push_back(source.rank);
  return members;
}

// Which of their chunks that is: in an exchange that for the member, else the same.
inline int chunk_given(const Trial& trial, int m, int chunk) { return testing::exchanges(trial.collective) ? m : chunk; }

// True if hierarchical/wire_sides.cpp lets the member's piece lie in its output. A buffer with a block for each rank
// is there to be given, not to be passed on, and a member that takes nothing has no output but partials of sums.
inline bool has_room(const Trial& trial, int m, int chunk) {
  const fcclColl_t c = trial.collective;
  if (testing::exchanges(c)) return true;
  if (testing::gives_blocks(c)) return chunk == m && (testing::reduces(c) || m != trial.group.root);
  return testing::reduces(c) || meant_by(trial) == fcclCollAllGather || testing::takes(c, m, trial.group.root);
}

// True if a later slice may use that memory again.
inline bool input_is_staged(const Trial& trial, int m) {
  const fcclColl_t c = trial.collective;
  return testing::reduces(c) || testing::exchanges(c) || (c == fcclCollGather && m != trial.group.root) ||
         (c == fcclCollScatter && m == trial.group.root);
}

inline bool output_is_staged(fcclColl_t c) { return testing::only_root_takes(c) || testing::gives_blocks(c); }

}  // namespace fccl::core::plan
