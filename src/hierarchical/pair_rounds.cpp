// Moves the blocks of pairs through the slots of pairs.
#include "hierarchical/pair_rounds.h"

#include "base/rounding.h"
#include "hierarchical/pair_blocks.h"
#include "hierarchical/relay_context.h"
#include "host/lane.h"

namespace fccl::core {

PairRounds::PairRounds(const RelayContext& context)
    : context_(context), per_slot_(context.per_slot(context.lane.shape().pair_slot_bytes())) {}

const PairBlocks& PairRounds::blocks() const { return *context_.hierarchical.pair_blocks; }

// The last rank puts most, since it is left over if any is.
int PairRounds::turns_up() const {
  const int last = context_.lane.ranks() - 1;
  return divided_up(items_up(last, last % context_.columns().columns()), per_slot_);
}

int PairRounds::turns_down() const { return divided_up(context_.items_down(0), per_slot_); }

int PairRounds::items_up(int from, int to) const {
  const int columns = context_.columns().columns();
  const bool carries = from >= columns && from % columns == to;
  return carries ? 1 + static_cast<int>(blocks().foreign().size()) : 1;
}

SlotWalk PairRounds::walk(int items) const { return context_.walk(items, per_slot_); }

size_t PairRounds::bytes_sent_to(int rank) const {
  const Layout input = context_.task.call.input(context_.columns().ranks());
  return context_.wire_plan.pieces.elements_in(input.bytes(rank), context_.round.slice) * context_.element_bytes;
}

const std::byte* PairRounds::sent_at(int rank) const {
  return context_.own_sent() + context_.task.call.input(context_.columns().ranks()).offset(rank);
}

void PairRounds::take_from(int rank, const std::byte* piece) const {
  const Layout output = context_.task.call.output(context_.columns().ranks());
  const size_t elements = context_.wire_plan.pieces.elements_in(output.bytes(rank), context_.round.slice);
  if (elements > 0) context_.to_result(context_.own_result() + output.offset(rank), piece, elements * context_.element_bytes);
}

int PairRounds::sender(int column, int n) const {
  return context_.blocks_of(column).numbers[static_cast<size_t>(context_.place_down(column, n))];
}

std::byte* PairRounds::at(const WireSide& side, int place) const { return side.at(place, place, context_.round.slice); }

size_t PairRounds::bytes_in(const WireSide& side, int place) const {
  return side.elements_of(place, context_.round.slice) * context_.element_bytes;
}

void PairRounds::put_up() const {
  for (int i = 1; i < context_.lane.ranks(); ++i) put_up_for(context_.lane.peer(i));
}

void PairRounds::put_up_for(int peer) const {
  const Lane& lane = context_.lane;
  std::byte* slot = lane.slots.pair_slot(lane.rank(), peer, context_.number);
  for (const auto [n, offset] : walk(items_up(lane.rank(), peer))) {
    const int to = n == 0 ? lane.rank_of(peer) : blocks().foreign()[static_cast<size_t>(n - 1)];
    if (const size_t length = bytes_sent_to(to); length > 0) lane.slots.put(slot + offset, sent_at(to), length);
  }
}

void PairRounds::put_down() const {
  const Lane& lane = context_.lane;
  for (int i = 1; i < lane.ranks(); ++i) {
    const int peer = lane.peer(i);
    std::byte* slot = lane.slots.pair_slot(lane.rank(), peer, context_.number);
    for (const auto [n, offset] : walk(context_.items_down(lane.rank()))) {
      const int place = blocks().place_taken(n, peer);
      lane.slots.put(slot + offset, at(context_.output(), place), bytes_in(context_.output(), place));
    }
  }
}

void PairRounds::take_up(int peer) const {
  const Lane& lane = context_.lane;
  const std::byte* slot = lane.slots.pair_slot(peer, lane.rank(), context_.number);
  for (const auto [n, offset] : walk(items_up(peer, lane.rank()))) {
    if (n == 0) {
      take_from(lane.rank_of(peer), slot + offset);
    } else {
      const int place = blocks().place_given(peer, blocks().foreign()[static_cast<size_t>(n - 1)]);
      copy_bytes(at(context_.input(), place), slot + offset, bytes_in(context_.input(), place));
    }
  }
}

void PairRounds::take_down(int peer) const {
  if (peer >= context_.columns().columns()) return;
  const std::byte* slot = context_.lane.slots.pair_slot(peer, context_.lane.rank(), context_.number);
  for (const auto [n, offset] : walk(context_.items_down(peer))) take_from(sender(peer, n), slot + offset);
}

void PairRounds::take_own_up() const {
  const int me = context_.me;
  // A rank that sends nothing may have no buffer, in which no piece has a place.
  if (bytes_sent_to(me) > 0) take_from(me, sent_at(me));
  if (!context_.is_column() || !context_.rounds.feeds_wire) return;
  for (const int to : blocks().foreign()) {
    const int place = blocks().place_given(context_.lane.rank(), to);
    if (const size_t length = bytes_sent_to(to); length > 0) copy_bytes(at(context_.input(), place), sent_at(to), length);
  }
}

void PairRounds::take_own_down() const {
  const int column = context_.lane.rank();
  for (int n = 0; n < context_.items_down(column); ++n)
    take_from(sender(column, n), at(context_.output(), blocks().place_taken(n, column)));
}

}  // namespace fccl::core
