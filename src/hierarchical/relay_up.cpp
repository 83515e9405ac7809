// Does the rounds up of each collective: from the ranks of a host to its columns.
#include <algorithm>

#include "hierarchical/relay.h"
#include "kernels/copy.h"

namespace fccl::core {

void IntraHostRelay::put_up() {
  if (lane_.ranks() == 1) return;
  const int me = lane_.rank_of(lane_.rank());
  if (row_.reduces) {
    put_partials();
  } else if (row_.givers == Who::all) {
    if (piece_bytes(me, slice_) > 0)
      copy_bytes(lane_.gather_slot(lane_.rank(), round_), bytes(task_.call.send) + offset_, piece_bytes(me, slice_));
  } else if (is_root()) {
    put_from_root();
  }
}

// Puts for each peer the pieces that its column brings to their owners.
void IntraHostRelay::put_partials() {
  const int first = turn_ * per_slot(RoundKind::up);
  for (int i = 1; i < lane_.ranks(); ++i) {
    const int peer = lane_.peer(i);
    if (peer >= hierarchical_.columns.columns()) continue;
    const Blocks& blocks = hierarchical_.planner.blocks_of(signature_, wire_plan_.is_whole, peer);
    std::byte* slot = lane_.pair_slot(lane_.rank(), peer, round_);
    for (int n = first; n < std::min(blocks.size(), first + per_slot(RoundKind::up)); ++n) {
      const int block = blocks.numbers[n];
      copy_bytes(slot, send_at(block), piece_bytes(block, slice_) >> widening_shift_);
      slot += wire_plan_.pieces.piece_elements * element_;
    }
  }
}

void IntraHostRelay::put_from_root() {
  const int all = blocks_of_root();
  const int first = turn_ * per_slot(RoundKind::up);
  std::byte* slot = lane_.gather_slot(lane_.rank(), round_);
  for (int block = first; block < std::min(all, first + per_slot(RoundKind::up)); ++block) {
    copy_bytes(slot, send_at(block), piece_bytes(block, slice_));
    slot += wire_plan_.pieces.piece_elements * element_;
  }
}

void IntraHostRelay::take_up(int peer) {
  const int rank = lane_.rank_of(peer);
  if (row_.reduces) return;
  const std::byte* slot = lane_.gather_slot(peer, round_);
  if (row_.givers == Who::root) return rank == signature_.root ? take_from_root(slot) : void();
  if (row_.takes(lane_.rank_of(lane_.rank()), signature_.root)) to_result_(recv_at(rank), slot, piece_bytes(rank, slice_));
  if (stages_input() && hierarchical_.columns.carrier_of(rank) == lane_.rank())
    copy_bytes(input().at(rank, place_of_rank(rank), slice_), slot, piece_bytes(rank, slice_));
}

void IntraHostRelay::take_from_root(const std::byte* slot) {
  const Columns& columns = hierarchical_.columns;
  const int me = lane_.rank_of(lane_.rank());
  const bool scatters = row_.input == Extent::block_per_rank;
  const int all = blocks_of_root();
  const int first = turn_ * per_slot(RoundKind::up);
  for (int block = first; block < std::min(all, first + per_slot(RoundKind::up)); ++block) {
    const size_t length = piece_bytes(block, slice_);
    if (!scatters)
      copy_bytes(recv_at(block), slot, length);
    else if (block == me)
      copy_bytes(bytes(task_.call.recv) + offset_, slot, length);
    else if (is_column() && columns.carrier_of(block) == lane_.rank() && columns.host_of(block) != columns.host())
      copy_bytes(input().at(block, place_of_rank(block), slice_), slot, length);
    slot += wire_plan_.pieces.piece_elements * element_;
  }
}

// Adds up this host's partial of the pieces that this column brings to their owners.
void IntraHostRelay::add_partials() {
  const Blocks& blocks = hierarchical_.planner.blocks_of(signature_, wire_plan_.is_whole, lane_.rank());
  const ReduceKernel partial = hierarchical_.planner.partial_kernel_of(signature_);
  const int first = turn_ * per_slot(RoundKind::up);
  size_t offset = 0;
  for (int n = first; n < std::min(blocks.size(), first + per_slot(RoundKind::up)); ++n) {
    const int block = blocks.numbers[n];
    for (int rank = 0; rank < lane_.ranks(); ++rank)
      lane_.sources[rank] = rank == lane_.rank() ? send_at(block) : lane_.pair_slot(rank, lane_.rank(), round_) + offset;
    if (const size_t elements = wire_plan_.pieces.elements_of(block, slice_); elements > 0)
      partial(input().at(block, n, slice_), lane_.sources.data(), lane_.ranks(), elements, lane_.scalars.data());
    offset += wire_plan_.pieces.piece_elements * element_;
  }
}

// Copies data that does not leave this rank.
void IntraHostRelay::take_own_up() {
  if (has_pairs()) return take_own_pairs_up();
  const int me = lane_.rank_of(lane_.rank());
  if (row_.reduces) return;
  if (row_.givers == Who::root) return is_root() ? take_own_of_root() : void();
  // A block with a count of its own may be empty, or have ended.
  if (piece_bytes(me, slice_) == 0) return;
  const std::byte* own = bytes(task_.call.send) + offset_;
  if (row_.takes(me, signature_.root)) to_result_(recv_at(me), own, piece_bytes(me, slice_));
  if (stages_input()) copy_bytes(input().at(me, place_of_rank(me), slice_), own, piece_bytes(me, slice_));
}

void IntraHostRelay::take_own_of_root() {
  const int me = lane_.rank_of(lane_.rank());
  if (row_.input == Extent::block_per_rank)
    return copy_bytes(bytes(task_.call.recv) + offset_, send_at(me), piece_bytes(me, slice_));
  const int all = blocks_of_root();
  for (int block = 0; block < all; ++block) copy_bytes(recv_at(block), send_at(block), piece_bytes(block, slice_));
}

}  // namespace fccl::core
