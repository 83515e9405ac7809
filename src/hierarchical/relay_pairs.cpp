// Runs the rounds of collectives with a block for each pair of ranks: up, within the host from rank to rank and to the column
// that carries a rank's blocks; down, from each column to the rank that a block is for.
#include <algorithm>

#include "hierarchical/relay.h"
#include "kernels/copy.h"

namespace fccl::core {

// Counts one block for the peer, plus one for each rank of other hosts if the peer is the column that carries this rank's
// blocks.
int IntraHostRelay::items_up(int from, int to) const {
  const Columns& columns = hierarchical_.columns;
  const bool carries = is_carried(from) && from % columns.columns() == to;
  return carries ? 1 + static_cast<int>(hierarchical_.pair_blocks->foreign().size()) : 1;
}

WireSide IntraHostRelay::of_pairs(const Blocks& blocks, const Layout& layout, const void* base) const {
  WireSide side{&blocks, wire_plan_.pieces, {bytes(base), layout, wire_plan_.pieces.piece_elements * element_}};
  side.pieces.blocks = layout;
  return side;
}

WireSide IntraHostRelay::input_of_pairs() {
  PairBlocks& pairs = *hierarchical_.pair_blocks;
  const int ranks = hierarchical_.columns.ranks();
  pairs.place_in_buffers(task_.call.input(ranks), task_.call.output(ranks));
  WireSide side = of_pairs(pairs.given(), pairs.given_layout(), task_.call.send);
  if (rounds_.feeds_wire) side.buffer = staged(pairs.given(), element_).buffer;
  return side;
}

WireSide IntraHostRelay::output_of_pairs() const {
  const PairBlocks& pairs = *hierarchical_.pair_blocks;
  WireSide side = of_pairs(pairs.taken(), pairs.taken_layout(), task_.call.recv);
  if (lane_.ranks() > 1) side.buffer = staged(pairs.taken(), element_).buffer;
  return side;
}

void IntraHostRelay::keep_counts() {
  if (is_column()) hierarchical_.pair_blocks->read(input(), output());
}

void IntraHostRelay::put_pairs() {
  for (int i = 1; i < lane_.ranks(); ++i) {
    const int peer = lane_.peer(i);
    std::byte* slot = lane_.pair_slot(lane_.rank(), peer, round_);
    if (kind_ == RoundKind::up)
      put_pairs_up(peer, slot);
    else if (is_column())
      put_pairs_down(peer, slot);
  }
}

void IntraHostRelay::put_pairs_up(int peer, std::byte* slot) {
  const int first = turn_ * per_slot(RoundKind::up);
  const int end = std::min(items_up(lane_.rank(), peer), first + per_slot(RoundKind::up));
  for (int n = first; n < end; ++n) {
    const int to = n == 0 ? lane_.rank_of(peer) : hierarchical_.pair_blocks->foreign()[static_cast<size_t>(n - 1)];
    if (const size_t length = bytes_sent_to(to); length > 0) copy_bytes(slot, sent_at(to), length);
    slot += wire_plan_.pieces.piece_elements * element_;
  }
}

void IntraHostRelay::put_pairs_down(int peer, std::byte* slot) {
  const int first = turn_ * per_slot(RoundKind::down);
  const int end = std::min(items(lane_.rank()), first + per_slot(RoundKind::down));
  for (int n = first; n < end; ++n) {
    const int place = hierarchical_.pair_blocks->place_taken(n, peer);
    copy_bytes(slot, output().at(place, place, slice_), output().elements_of(place, slice_) * element_);
    slot += wire_plan_.pieces.piece_elements * element_;
  }
}

void IntraHostRelay::take_pairs(int peer) {
  const std::byte* slot = lane_.pair_slot(peer, lane_.rank(), round_);
  if (kind_ == RoundKind::up) take_pairs_up(peer, slot);
  if (kind_ == RoundKind::down && !is_carried(peer)) take_pairs_down(peer, slot);
}

void IntraHostRelay::take_pairs_up(int peer, const std::byte* slot) {
  const int first = turn_ * per_slot(RoundKind::up);
  const int end = std::min(items_up(peer, lane_.rank()), first + per_slot(RoundKind::up));
  const int from = lane_.rank_of(peer);
  for (int n = first; n < end; ++n) {
    if (n == 0) {
      if (const size_t length = bytes_taken_from(from); length > 0) to_result_(taken_at(from), slot, length);
    } else {
      const int to = hierarchical_.pair_blocks->foreign()[static_cast<size_t>(n - 1)];
      const int place = hierarchical_.pair_blocks->place_given(peer, to);
      copy_bytes(input().at(place, place, slice_), slot, input().elements_of(place, slice_) * element_);
    }
    slot += wire_plan_.pieces.piece_elements * element_;
  }
}

// The n-th block that a column puts for a rank of its host comes from the n-th rank of other hosts in that column.
void IntraHostRelay::take_pairs_down(int peer, const std::byte* slot) {
  const int first = turn_ * per_slot(RoundKind::down);
  const int end = std::min(items(peer), first + per_slot(RoundKind::down));
  for (int n = first; n < end; ++n) {
    const int from = hierarchical_.columns.by_rank(peer).numbers[static_cast<size_t>(place_of(peer, n))];
    if (const size_t length = bytes_taken_from(from); length > 0) to_result_(taken_at(from), slot, length);
    slot += wire_plan_.pieces.piece_elements * element_;
  }
}

// Copies this rank's block for itself. If other ranks' blocks leave from here, it also stages this rank's own next to them.
void IntraHostRelay::take_own_pairs_up() {
  const int me = lane_.rank_of(lane_.rank());
  if (const size_t length = bytes_sent_to(me); length > 0) to_result_(taken_at(me), sent_at(me), length);
  if (!is_column() || !rounds_.feeds_wire) return;
  for (const int to : hierarchical_.pair_blocks->foreign()) {
    const int place = hierarchical_.pair_blocks->place_given(lane_.rank(), to);
    if (const size_t length = bytes_sent_to(to); length > 0) copy_bytes(input().at(place, place, slice_), sent_at(to), length);
  }
}

void IntraHostRelay::take_own_pairs_down() {
  for (int n = 0; n < items(lane_.rank()); ++n) {
    const int from = hierarchical_.columns.by_rank(lane_.rank()).numbers[static_cast<size_t>(place_of(lane_.rank(), n))];
    const int place = hierarchical_.pair_blocks->place_taken(n, lane_.rank());
    if (const size_t length = bytes_taken_from(from); length > 0)
      to_result_(taken_at(from), output().at(place, place, slice_), length);
  }
}

}  // namespace fccl::core
