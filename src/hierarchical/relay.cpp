// Sequences the rounds of each collective, and does the rounds down.
#include "hierarchical/relay.h"

#include <algorithm>
#include <bit>

#include "host/route.h"
#include "kernels/copy.h"

namespace fccl::core {

IntraHostRelay::IntraHostRelay(Lane& lane, HierarchicalLane& hierarchical, const Task& task, size_t longest)
    : lane_(lane),
      hierarchical_(hierarchical),
      task_(task),
      signature_(task.call.signature),
      row_(signature_.row()),
      wire_plan_(hierarchical.planner.wire_plan_of(task.call, longest)),
      element_(size_of(signature_.result_type())),
      widening_shift_(std::countr_zero(signature_.widening())),
      blocks_(wire_plan_.pieces.blocks),
      root_is_here_(signature_.root >= 0 && hierarchical.columns.host_of(signature_.root) == hierarchical.columns.host()),
      rounds_(rounds_of(row_, facts())),
      sequence_(wire_plan_.pieces.slices,
                {rounds_.has_up ? turns_of(RoundKind::up) : 0, rounds_.has_down ? turns_of(RoundKind::down) : 0},
                rounds_.closes) {
  const bool is_block = rounds_.share == Share::of_this_host;
  const bool is_sent_on = row_.spreads() && rounds_.feeds_wire;
  const size_t result = has_pairs() ? task.call.output(hierarchical.columns.ranks()).total() : blocks_.total();
  if ((is_block ? blocks_.most() : result) >= kTuning.streamed && !is_sent_on) to_result_ = stream_bytes;
  if (is_column()) hierarchical.inter_host_call->prepare(wire_task());
}

RelayFacts IntraHostRelay::facts() const {
  const Columns& columns = hierarchical_.columns;
  return {.ranks = lane_.ranks(),
          .columns = columns.columns(),
          .is_even = columns.is_even(),
          .root_is_here = root_is_here_,
          .is_root = is_root(),
          .hands_on = wire_plan_.hands_on};
}

void IntraHostRelay::begin() {
  if (signature_.op == ReduceOp::premul_sum)
    for (int rank = 0; rank < lane_.ranks(); ++rank) lane_.scalars[rank] = lane_.record_of(rank).scalar;
  if (!is_column()) return;
  hierarchical_.inter_host_call->begin();
  if (rounds_.feeds_wire) return;
  hierarchical_.inter_host_call->make_ready(wire_plan_.pieces.slices);
  hierarchical_.inter_host_call->poll();
}

WireTask IntraHostRelay::wire_task() {
  const Columns& columns = hierarchical_.columns;
  WireTask task{.call = {task_.number, signature_},
                .steps = wire_plan_.steps,
                .root = signature_.root < 0 ? -1 : columns.host_of(signature_.root),
                .input = input_side(),
                .output = output_side(),
                .output_is_taken = rounds_.has_down,
                .put = rounds_.has_down || signature_.root >= 0 ? copy_bytes : to_result_,
                .element_bytes = element_,
                .partial_bytes = size_of(hierarchical_.planner.partial_type(signature_)),
                .divisor = {static_cast<uint64_t>(columns.ranks())}};
  if (row_.reduces) task.total = hierarchical_.planner.total_kernel_of(signature_);
  return task;
}

// Returns a side in memory of the inter-host call, whose elements have `element` bytes.
WireSide IntraHostRelay::staged(const Blocks& blocks, size_t element) const {
  return {&blocks, wire_plan_.pieces,
          Buffer::staging(wire_plan_.pieces.piece_elements * element, blocks.size(), RoundSequence::kStaged)};
}

// `begin`: the layout's offset at which the buffer begins, since the buffer may hold only one block of it.
WireSide IntraHostRelay::of_user(const void* base, size_t begin) const {
  return {&hierarchical_.planner.blocks_of(signature_, wire_plan_.is_whole, hierarchical_.columns.local()),
          wire_plan_.pieces,
          {bytes(base) - begin, blocks_, wire_plan_.pieces.piece_elements * element_}};
}

WireSide IntraHostRelay::input_side() {
  if (has_pairs()) return input_of_pairs();
  const int me = lane_.rank_of(lane_.rank());
  const Blocks& carried = hierarchical_.planner.blocks_of(signature_, wire_plan_.is_whole, hierarchical_.columns.local());
  if (row_.reduces) return staged(carried, size_of(hierarchical_.planner.partial_type(signature_)));
  // Data that every rank gets is sent from the result.
  if (row_.spreads() && (rounds_.feeds_wire || !row_.gives(me, signature_.root))) return of_user(task_.call.recv, 0);
  if (rounds_.feeds_wire) return staged(carried, element_);
  return of_user(task_.call.send, row_.output == Extent::block_per_rank ? blocks_.offset(me) : 0);
}

WireSide IntraHostRelay::output_side() const {
  if (has_pairs()) return output_of_pairs();
  const int me = lane_.rank_of(lane_.rank());
  const Blocks& carried = hierarchical_.planner.blocks_of(signature_, wire_plan_.is_whole, hierarchical_.columns.local());
  const WireSide nowhere{&carried, wire_plan_.pieces, {}};
  if (row_.takers == Who::root) {
    if (is_root()) return of_user(task_.call.recv, 0);
    return row_.reduces || root_is_here_ ? staged(carried, element_) : nowhere;
  }
  if (row_.input != Extent::block_per_rank) return of_user(task_.call.recv, 0);
  if (row_.givers == Who::root && root_is_here_) return nowhere;
  return hierarchical_.columns.is_even() ? of_user(task_.call.recv, blocks_.offset(me)) : staged(carried, element_);
}

bool IntraHostRelay::next() {
  const bool goes_on = sequence_.next();
  kind_ = sequence_.round().kind;
  slice_ = sequence_.round().slice;
  turn_ = sequence_.round().turn;
  round_ = lane_.slices() + sequence_.ended();
  offset_ = slice_ * wire_plan_.pieces.piece_elements * element_;
  if (!goes_on) lane_.count_slices(sequence_.ended());
  return goes_on;
}

// Walks the pieces of this round.
SlotWalk IntraHostRelay::walk(int items) const {
  return {items, per_slot(kind_), turn_, wire_plan_.pieces.piece_elements * element_};
}

int IntraHostRelay::per_slot(RoundKind kind) const {
  const size_t piece = wire_plan_.pieces.piece_elements * element_;
  const bool is_pair = has_pairs() || (kind == RoundKind::up && row_.reduces);
  return static_cast<int>(std::max<size_t>(1, (is_pair ? lane_.shape().pair_slot_bytes() : lane_.shape().slot_bytes) / piece));
}

// Returns as many rounds as the column with the most blocks needs; the other columns put nothing in the last round.
int IntraHostRelay::turns_of(RoundKind kind) const {
  int most = 1;
  if (kind == RoundKind::down)
    most = items(0);
  else if (has_pairs())
    most = items_up(lane_.ranks() - 1, (lane_.ranks() - 1) % hierarchical_.columns.columns());
  else if (row_.reduces)
    most = hierarchical_.planner.blocks_of(signature_, wire_plan_.is_whole, 0).size();
  else if (row_.givers == Who::root)
    most = blocks_of_root();
  return (most + per_slot(kind) - 1) / per_slot(kind);
}

// Returns the number of blocks in the root's buffer.
int IntraHostRelay::blocks_of_root() const {
  if (row_.input == Extent::block_per_rank) return hierarchical_.columns.ranks();
  return hierarchical_.columns.columns() * hierarchical_.planner.blocks_of(signature_, wire_plan_.is_whole, 0).size();
}

// Return how many blocks of a column go down on this host, and their places in the column.
int IntraHostRelay::items(int column) const {
  const Blocks& blocks = hierarchical_.planner.blocks_of(signature_, wire_plan_.is_whole, column);
  if (rounds_.share == Share::all) return blocks.size();
  const int here = static_cast<int>(blocks.of(hierarchical_.columns.host()).size());
  return rounds_.share == Share::of_this_host ? here : blocks.size() - here;
}

int IntraHostRelay::place_of(int column, int item) const {
  const Blocks& blocks = hierarchical_.planner.blocks_of(signature_, wire_plan_.is_whole, column);
  if (rounds_.share == Share::all) return item;
  const int first = blocks.begin[hierarchical_.columns.host()], behind = blocks.begin[hierarchical_.columns.host() + 1];
  if (rounds_.share == Share::of_this_host) return first + item;
  return item < first ? item : item + behind - first;
}

// Returns the place of a rank's block in its column.
int IntraHostRelay::place_of_rank(int rank) const {
  const Columns& columns = hierarchical_.columns;
  return columns.by_rank(columns.carrier_of(rank)).begin[columns.host_of(rank)] + columns.local_of(rank) / columns.columns();
}

Awaited IntraHostRelay::may_put() const {
  if (is_column()) {
    const InterHostCall& inter_host_call = *hierarchical_.inter_host_call;
    if (kind_ == RoundKind::closing) return inter_host_call.ended();
    if (kind_ == RoundKind::down) return inter_host_call.received(slice_ + 1);
    const uint64_t staged = input().buffer.slices;
    if (stages_input() && slice_ >= staged) return inter_host_call.done(slice_ + 1 - staged);
  }
  // Waits for a point that is always reached.
  return lane_.published(lane_.rank(), round_);
}

void IntraHostRelay::put() {
  if (has_pairs() && kind_ != RoundKind::closing)
    put_pairs();
  else if (kind_ == RoundKind::up)
    put_up();
  else if (kind_ == RoundKind::down && is_column())
    put_down();
  lane_.my_board().published.publish(round_ + 1);
  if (kind_ == RoundKind::up && turn_ == 0) take_own_up();
}

// The root has these blocks in its own buffer already.
void IntraHostRelay::put_down() {
  if (is_root() || lane_.ranks() == 1) return;
  const int column = lane_.rank();
  const Blocks& blocks = hierarchical_.planner.blocks_of(signature_, wire_plan_.is_whole, column);
  std::byte* slot = lane_.gather_slot(lane_.rank(), round_);
  for (const auto [n, offset] : walk(items(column))) {
    const int place = place_of(column, n);
    const int block = blocks.numbers[place];
    copy_bytes(slot + offset, output().at(block, place, slice_), piece_bytes(block, slice_));
  }
}

void IntraHostRelay::take(int peer) {
  if (has_pairs()) return take_pairs(peer);
  if (kind_ == RoundKind::up) take_up(peer);
  if (kind_ == RoundKind::down && peer < hierarchical_.columns.columns()) take_down(peer);
}

void IntraHostRelay::take_down(int peer) {
  const Blocks& blocks = hierarchical_.planner.blocks_of(signature_, wire_plan_.is_whole, peer);
  const int me = lane_.rank_of(lane_.rank());
  const bool takes_own = rounds_.share == Share::of_this_host;
  if (signature_.root >= 0 && root_is_here_ && !is_root()) return;
  const std::byte* slot = lane_.gather_slot(peer, round_);
  for (const auto [n, offset] : walk(items(peer))) {
    const int block = blocks.numbers[place_of(peer, n)];
    const size_t length = piece_bytes(block, slice_);
    if (!takes_own)
      to_result_(recv_at(block), slot + offset, length);
    else if (block == me)
      to_result_(bytes(task_.call.recv) + offset_, slot + offset, length);
  }
}

void IntraHostRelay::finish() {
  if (!is_column()) return;
  InterHostCall& inter_host_call = *hierarchical_.inter_host_call;
  if (kind_ == RoundKind::up) {
    if (row_.reduces) add_partials();
    if (rounds_.feeds_wire && sequence_.is_last_turn()) inter_host_call.make_ready(slice_ + 1);
  }
  if (kind_ == RoundKind::down && sequence_.is_last_turn()) {
    take_own_down();
    inter_host_call.release(slice_ + 1);
  }
  inter_host_call.poll();
}

void IntraHostRelay::take_own_down() {
  if (has_pairs()) return take_own_pairs_down();
  if (rounds_.share != Share::of_this_host) return;
  const int me = lane_.rank_of(lane_.rank());
  to_result_(bytes(task_.call.recv) + offset_, output().at(me, place_of_rank(me), slice_), piece_bytes(me, slice_));
}

}  // namespace fccl::core
