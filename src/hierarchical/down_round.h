// DownRound: brings data of other hosts from the columns that received it to the ranks of a host.
#pragma once

#include "hierarchical/slot_walk.h"

namespace fccl::core {

struct RelayContext;

// For collectives without a block for each pair of ranks. Lives in the relay, beside the context that it reads.
class DownRound {
 public:
  explicit DownRound(const RelayContext& context);

  // Returns as many rounds for each slice as the column with the most blocks needs; the others put nothing in the last one.
  int turns() const;
  // Only a rank that has a column puts.
  void put() const;
  void take(int peer) const;
  // Copies what has come to this column for this rank, once for each slice.
  void take_own() const;

 private:
  SlotWalk walk(int column) const;

  const RelayContext& context_;
  int per_slot_;
};

}  // namespace fccl::core
