// PairRounds: moves the blocks of a call with a block for each pair of ranks: up, within the host from rank to rank and to the
// column that carries a rank's blocks; down, from each column to the rank that a block is for.
#pragma once

#include <cstddef>

#include "hierarchical/slot_walk.h"

namespace fccl::core {

struct RelayContext;
struct WireSide;
class PairBlocks;

// Lives in the relay, beside the context that it reads. Only calls with a block for each pair of ranks use it.
class PairRounds {
 public:
  explicit PairRounds(const RelayContext& context);

  // Return the rounds that each slice takes.
  int turns_up() const;
  int turns_down() const;
  void put_up() const;
  // Only a rank that has a column puts down.
  void put_down() const;
  void take_up(int peer) const;
  void take_down(int peer) const;
  // Copies this rank's block for itself. If other ranks' blocks leave from here, it also stages this rank's own next to them.
  void take_own_up() const;
  // Copies what has come to this column for this rank.
  void take_own_down() const;

 private:
  // Counts the blocks that a rank puts up for another one: one for that rank, plus one for each rank of other hosts if it is
  // the column that carries this rank's blocks.
  int items_up(int from, int to) const;
  SlotWalk walk(int items) const;
  void put_up_for(int peer) const;
  // Takes the piece of the block from `rank`, if it has one in the slice.
  void take_from(int rank, const std::byte* piece) const;
  // Returns the rank of the n-th block that a column puts down: the n-th rank of other hosts in the column.
  int sender(int column, int n) const;
  size_t bytes_sent_to(int rank) const;
  const std::byte* sent_at(int rank) const;
  // Return the piece of a block in the memory for the wire, and its bytes, by the block's place in the column.
  std::byte* at(const WireSide& side, int place) const;
  size_t bytes_in(const WireSide& side, int place) const;
  const PairBlocks& blocks() const;

  const RelayContext& context_;
  int per_slot_;
};

}  // namespace fccl::core
