// RelayContext: holds what the rounds of one call share: the call, its pieces, and the round that runs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hierarchical/hierarchical_lane.h"
#include "hierarchical/relay_rounds.h"
#include "hierarchical/slot_walk.h"
#include "host/task.h"
#include "kernels/copy.h"

namespace fccl::core {

class Lane;

// Lives in the relay, which alone changes it; the rounds read it on the same thread. "Block" means a block of the user's
// buffers, "piece" the part of it that belongs to the slice of the round.
struct RelayContext {
  // `longest`: the bytes of the longest block of a call with a block for each pair of ranks.
  RelayContext(Lane& lane, HierarchicalLane& hierarchical, const Task& task, size_t longest);

  const Signature& signature() const { return task.call.signature; }
  const Collective& row() const { return task.call.signature.row(); }
  const Columns& columns() const { return hierarchical.columns; }
  bool is_column() const { return hierarchical.inter_host_call != nullptr; }
  bool is_root() const { return me == signature().root; }
  bool root_is_here() const { return signature().root >= 0 && columns().host_of(signature().root) == columns().host(); }

  // Returns the blocks that a column carries.
  const Blocks& blocks_of(int column) const { return hierarchical.planner.blocks_of(signature(), wire_plan.is_whole, column); }
  // Returns the place of a rank's block among those of its column.
  int place_of(int rank) const;
  // Return how many blocks of a column go down on this host, and their places among those of the column.
  int items_down(int column) const;
  int place_down(int column, int item) const;

  // Returns the bytes of each piece except a block's last.
  size_t whole_piece() const { return wire_plan.pieces.piece_elements * element_bytes; }
  size_t piece_bytes(int block) const { return wire_plan.pieces.elements_of(block, round.slice) * element_bytes; }
  // Return how many pieces fit into a slot, and the walk of the round over the `items` pieces of a slice.
  int per_slot(size_t slot_bytes) const;
  SlotWalk walk(int items, int per_slot) const { return {items, per_slot, round.turn, whole_piece()}; }

  // Return the piece of a block in the user's buffers, where the buffer has several blocks. Inputs lie at the offsets of
  // results with as many elements, scaled to the input's type.
  std::byte* sent_at(int block) const { return bytes(task.call.send) + ((layout().offset(block) + offset) >> widening_shift); }
  std::byte* result_at(int block) const { return bytes(task.call.recv) + layout().offset(block) + offset; }
  // Return the piece of a block that lies at the begin of the user's buffer.
  std::byte* own_sent() const { return bytes(task.call.send) + offset; }
  std::byte* own_result() const { return bytes(task.call.recv) + offset; }
  static std::byte* bytes(const void* buffer) { return static_cast<std::byte*>(const_cast<void*>(buffer)); }
  const Layout& layout() const { return wire_plan.pieces.blocks; }

  // Return where this rank, which has a column, keeps the pieces for the wire, and those from it.
  const WireSide& input() const;
  const WireSide& output() const;
  // True if the rounds up bring pieces into this rank's staging memory.
  bool stages_input() const { return is_column() && rounds.feeds_wire && input().buffer.is_staging(); }

  Lane& lane;
  HierarchicalLane& hierarchical;
  const Task& task;
  const int me;  // this rank's number in the communicator
  const WirePlan wire_plan;
  const RelayRounds rounds;
  const size_t element_bytes;  // of the result's type
  const int widening_shift;    // an element of the result has 2^widening_shift times the bytes of an element of the input
  const CopyBytes to_result;   // copies into the user's buffer, which no peer reads in this call
  // The round that runs, its number among all rounds of the lane (not the call's number), and the begin of its slice in each
  // block of the user's buffers.
  Round round;
  uint64_t number = 0;
  size_t offset = 0;
};

}  // namespace fccl::core
