// Moves the pieces of each kind of collective up.
#include "hierarchical/up_round.h"

#include "base/rounding.h"
#include "hierarchical/relay_context.h"
#include "host/lane.h"

namespace fccl::core {

UpRound::UpRound(const RelayContext& context)
    : context_(context),
      per_slot_(
          context.per_slot(context.row().reduces ? context.lane.shape().pair_slot_bytes() : context.lane.shape().slot_bytes)) {}

int UpRound::turns() const {
  int most = 1;
  if (context_.row().reduces)
    most = context_.blocks_of(0).size();
  else if (context_.row().givers == Who::root)
    most = blocks_of_root();
  return divided_up(most, per_slot_);
}

SlotWalk UpRound::walk(int items) const { return context_.walk(items, per_slot_); }

// Returns the number of blocks in the root's buffer.
int UpRound::blocks_of_root() const {
  if (context_.row().input == Extent::block_per_rank) return context_.columns().ranks();
  return context_.columns().columns() * context_.blocks_of(0).size();
}

void UpRound::put() const {
  const Lane& lane = context_.lane;
  if (lane.ranks() == 1) return;
  if (context_.row().reduces) {
    put_partials();
  } else if (context_.row().givers == Who::all) {
    if (const size_t length = context_.piece_bytes(context_.me); length > 0)
      lane.slots.put(lane.slots.gather_slot(lane.rank(), context_.number), context_.own_sent(), length);
  } else if (context_.is_root()) {
    put_from_root();
  }
}

// Puts for each peer the pieces that its column brings to their owners.
void UpRound::put_partials() const {
  const Lane& lane = context_.lane;
  for (int i = 1; i < lane.ranks(); ++i) {
    const int peer = lane.peer(i);
    if (peer >= context_.columns().columns()) continue;
    const Blocks& blocks = context_.blocks_of(peer);
    std::byte* slot = lane.slots.pair_slot(lane.rank(), peer, context_.number);
    for (const auto [n, offset] : walk(blocks.size())) {
      const int block = blocks.numbers[n];
      lane.slots.put(slot + offset, context_.sent_at(block), context_.piece_bytes(block) >> context_.widening_shift);
    }
  }
}

void UpRound::put_from_root() const {
  std::byte* slot = context_.lane.slots.gather_slot(context_.lane.rank(), context_.number);
  for (const auto [block, offset] : walk(blocks_of_root()))
    context_.lane.slots.put(slot + offset, context_.sent_at(block), context_.piece_bytes(block));
}

void UpRound::take(int peer) const {
  const Collective& row = context_.row();
  const int rank = context_.lane.rank_of(peer);
  if (row.reduces) return;
  const std::byte* slot = context_.lane.slots.gather_slot(peer, context_.number);
  if (row.givers == Who::root) {
    if (rank == context_.signature().root) take_from_root(slot);
    return;
  }
  const size_t length = context_.piece_bytes(rank);
  if (row.takes(context_.me, context_.signature().root)) context_.to_result(context_.result_at(rank), slot, length);
  if (context_.stages_input() && context_.columns().carrier_of(rank) == context_.lane.rank())
    copy_bytes(context_.input().at(rank, context_.place_of(rank), context_.round.slice), slot, length);
}

void UpRound::take_from_root(const std::byte* slot) const {
  const Columns& columns = context_.columns();
  const int me = context_.me;
  const bool scatters = context_.row().input == Extent::block_per_rank;
  for (const auto [block, offset] : walk(blocks_of_root())) {
    const size_t length = context_.piece_bytes(block);
    if (!scatters)
      copy_bytes(context_.result_at(block), slot + offset, length);
    else if (block == me)
      copy_bytes(context_.own_result(), slot + offset, length);
    else if (context_.is_column() && columns.carrier_of(block) == context_.lane.rank() &&
             columns.host_of(block) != columns.host())
      copy_bytes(context_.input().at(block, context_.place_of(block), context_.round.slice), slot + offset, length);
  }
}

void UpRound::add_partials() const {
  Lane& lane = context_.lane;
  const Blocks& blocks = context_.blocks_of(lane.rank());
  const ReduceKernel partial = context_.hierarchical.planner.partial_kernel_of(context_.signature());
  for (const auto [n, offset] : walk(blocks.size())) {
    const int block = blocks.numbers[n];
    for (int rank = 0; rank < lane.ranks(); ++rank)
      lane.sources[rank] =
          rank == lane.rank() ? context_.sent_at(block) : lane.slots.pair_slot(rank, lane.rank(), context_.number) + offset;
    const uint64_t slice = context_.round.slice;
    if (const size_t elements = context_.wire_plan.pieces.elements_of(block, slice); elements > 0)
      partial(context_.input().at(block, n, slice), lane.sources.data(), lane.ranks(), elements, lane.scalars.data());
  }
}

void UpRound::take_own() const {
  const Collective& row = context_.row();
  const int me = context_.me;
  if (row.reduces) return;
  if (row.givers == Who::root) {
    if (context_.is_root()) take_own_of_root();
    return;
  }
  // A block with a count of its own may be empty, or have ended.
  const size_t length = context_.piece_bytes(me);
  if (length == 0) return;
  if (row.takes(me, context_.signature().root)) context_.to_result(context_.result_at(me), context_.own_sent(), length);
  if (context_.stages_input())
    copy_bytes(context_.input().at(me, context_.place_of(me), context_.round.slice), context_.own_sent(), length);
}

void UpRound::take_own_of_root() const {
  const int me = context_.me;
  if (context_.row().input == Extent::block_per_rank) {
    copy_bytes(context_.own_result(), context_.sent_at(me), context_.piece_bytes(me));
    return;
  }
  for (int block = 0; block < blocks_of_root(); ++block)
    copy_bytes(context_.result_at(block), context_.sent_at(block), context_.piece_bytes(block));
}

}  // namespace fccl::core
