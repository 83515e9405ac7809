// Moves the pieces of each kind of collective down.
#include "hierarchical/down_round.h"

#include "base/rounding.h"
#include "hierarchical/relay_context.h"
#include "host/lane.h"

namespace fccl::core {

DownRound::DownRound(const RelayContext& context)
    : context_(context), per_slot_(context.per_slot(context.lane.shape().slot_bytes)) {}

int DownRound::turns() const { return divided_up(context_.items_down(0), per_slot_); }

SlotWalk DownRound::walk(int column) const { return context_.walk(context_.items_down(column), per_slot_); }

// The root has these blocks in its own buffer already.
void DownRound::put() const {
  const Lane& lane = context_.lane;
  if (context_.is_root() || lane.ranks() == 1) return;
  const int column = lane.rank();
  const Blocks& blocks = context_.blocks_of(column);
  std::byte* slot = lane.slots.gather_slot(column, context_.number);
  for (const auto [n, offset] : walk(column)) {
    const int place = context_.place_down(column, n);
    const int block = blocks.numbers[place];
    lane.slots.put(slot + offset, context_.output().at(block, place, context_.round.slice), context_.piece_bytes(block));
  }
}

void DownRound::take(int peer) const {
  if (peer >= context_.columns().columns()) return;
  if (context_.root_is_here() && !context_.is_root()) return;
  const Blocks& blocks = context_.blocks_of(peer);
  const int me = context_.me;
  const bool takes_own = context_.rounds.share == RelayRounds::Share::of_this_host;
  const std::byte* slot = context_.lane.slots.gather_slot(peer, context_.number);
  for (const auto [n, offset] : walk(peer)) {
    const int block = blocks.numbers[context_.place_down(peer, n)];
    const size_t length = context_.piece_bytes(block);
    if (!takes_own)
      context_.to_result(context_.result_at(block), slot + offset, length);
    else if (block == me)
      context_.to_result(context_.own_result(), slot + offset, length);
  }
}

void DownRound::take_own() const {
  if (context_.rounds.share != RelayRounds::Share::of_this_host) return;
  const int me = context_.me;
  const std::byte* piece = context_.output().at(me, context_.place_of(me), context_.round.slice);
  context_.to_result(context_.own_result(), piece, context_.piece_bytes(me));
}

}  // namespace fccl::core
