// UpRound: brings what the ranks of a host give to the columns that send it, and to the ranks of the host that need it.
#pragma once

#include <cstddef>

#include "hierarchical/slot_walk.h"

namespace fccl::core {

struct RelayContext;

// For collectives without a block for each pair of ranks. Lives in the relay, beside the context that it reads.
class UpRound {
 public:
  explicit UpRound(const RelayContext& context);

  // Returns the rounds that each slice takes.
  int turns() const;
  void put() const;
  void take(int peer) const;
  // Copies data that does not leave this rank, once for each slice.
  void take_own() const;
  // Adds up this host's partial of the pieces that this column brings to their owners, once every peer has put its own.
  void add_partials() const;

 private:
  SlotWalk walk(int items) const;
  int blocks_of_root() const;
  void put_partials() const;
  void put_from_root() const;
  void take_from_root(const std::byte* slot) const;
  void take_own_of_root() const;

  const RelayContext& context_;
  int per_slot_;
};

}  // namespace fccl::core
