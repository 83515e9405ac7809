// The sequence of rounds of each collective, and what comes down.
#include "hierarchical/rounds.h"

#include <algorithm>

#include "kernels/copy.h"

namespace fccl {

Rounds::Rounds(Lane& lane, Span& span, const Task& task)
    : lane_(lane),
      span_(span),
      task_(task),
      signature_(task.call.signature),
      row_(signature_.row()),
      way_(span.ways.way_of(signature_)),
      element_(size_of(signature_.dtype)),
      blocks_(way_.pieces.layout(element_)),
      root_is_here_(signature_.root >= 0 && span.columns.host_of(signature_.root) == span.columns.host()),
      round_(lane.slices()) {
  choose_stages();
  const bool is_block = share_ == Share::of_this_host;
  const bool is_sent_on = row_.spreads() && is_fed_by_up_;
  if ((is_block ? blocks_.most() : blocks_.total()) >= kStreamedBytes && !is_sent_on) to_result_ = stream_bytes;
  if (!is_column()) return;
  input_ = input();
  output_ = output();
}

void Rounds::choose_stages() {
  const bool has_peers = lane_.ranks() > 1;
  const bool is_even = span_.columns.is_even();
  const auto some_here = [&](Who who) { return who == Who::all || (who == Who::root && root_is_here_); };
  const bool gives = some_here(row_.givers), takes = some_here(row_.takers);
  const bool leaves = gives && (row_.takers == Who::all || !root_is_here_);
  const bool comes = takes && (row_.givers == Who::all || !root_is_here_);
  const bool scatters = row_.input == Extent::block_per_rank;
  share_ = row_.output == Extent::block_per_rank ? Share::of_other_hosts : scatters ? Share::of_this_host : Share::all;
  has_up_ = gives && (row_.reduces || takes || !is_even);
  has_down_ = comes && (scatters ? !is_even : has_peers);
  is_fed_by_up_ = row_.reduces ||
                  (leaves && (row_.givers == Who::root ? !is_root() : !is_even || (way_.hands_on && row_.takers == Who::all)));
}

void Rounds::begin() {
  if (signature_.op == ReduceOp::premul_sum)
    for (int rank = 0; rank < lane_.ranks(); ++rank) lane_.scalars[rank] = lane_.record_of(rank).scalar;
  if (!is_column()) return;
  span_.crossing->begin(wire_task());
  if (is_fed_by_up_) return;
  span_.crossing->make_ready(way_.pieces.slices);
  span_.crossing->poll();
}

WireTask Rounds::wire_task() {
  const Columns& columns = span_.columns;
  WireTask task{.call = {task_.number, signature_, task_.call.scalar},
                .blocks = &span_.ways.blocks_of(signature_, way_, columns.local()),
                .pieces = way_.pieces,
                .steps = way_.steps,
                .root = signature_.root < 0 ? -1 : columns.host_of(signature_.root),
                .input = input_,
                .output = output_,
                .output_is_taken = has_down_,
                .put = has_down_ || signature_.root >= 0 ? copy_bytes : to_result_,
                .element_bytes = element_,
                .partial_bytes = size_of(span_.ways.partial_type(signature_)),
                .divisor = {static_cast<uint64_t>(columns.ranks())}};
  if (row_.reduces) task.total = total_kernel(signature_.dtype, signature_.op, span_.ways.wire_type());
  return task;
}

Buffer Rounds::of_user(const void* base, int first_block) const {
  return {bytes(base) - blocks_.offset(first_block), blocks_, way_.pieces.piece_elements * element_};
}

Buffer Rounds::staging(std::byte* memory, size_t piece_bytes) const {
  const int blocks = span_.ways.blocks_of(signature_, way_, span_.columns.local()).size();
  return {memory, {}, piece_bytes, Ways::kStaged, static_cast<size_t>(blocks) * piece_bytes};
}

Buffer Rounds::input() {
  const int me = lane_.rank_of(lane_.rank());
  const int blocks = span_.ways.blocks_of(signature_, way_, span_.columns.local()).size();
  const size_t partial = way_.pieces.piece_elements * size_of(span_.ways.partial_type(signature_));
  const size_t slices = static_cast<size_t>(std::min(Ways::kStaged, way_.pieces.slices));
  const auto staged = [&] {
    return staging(span_.crossing->input_memory(slices * static_cast<size_t>(blocks) * partial), partial);
  };
  if (row_.reduces) return staged();
  // What everybody gets is sent out of the result.
  if (row_.spreads() && (is_fed_by_up_ || !row_.gives(me, signature_.root))) return of_user(task_.call.recv, 0);
  if (is_fed_by_up_) return staged();
  return of_user(task_.call.send, row_.output == Extent::block_per_rank ? me : 0);
}

Buffer Rounds::output() {
  const int me = lane_.rank_of(lane_.rank());
  const int blocks = span_.ways.blocks_of(signature_, way_, span_.columns.local()).size();
  const size_t piece = way_.pieces.piece_elements * element_;
  const size_t slices = static_cast<size_t>(std::min(Ways::kStaged, way_.pieces.slices));
  const auto staged = [&] {
    return staging(span_.crossing->output_memory(slices * static_cast<size_t>(blocks) * piece), piece);
  };
  if (row_.takers == Who::root) {
    if (is_root()) return of_user(task_.call.recv, 0);
    return row_.reduces || root_is_here_ ? staged() : Buffer{};
  }
  if (row_.input != Extent::block_per_rank) return of_user(task_.call.recv, 0);
  if (row_.givers == Who::root && root_is_here_) return {};
  return span_.columns.is_even() ? of_user(task_.call.recv, me) : staged();
}

// A step is the rounds up of one slice and the rounds down of one that the wire has had some time for.
bool Rounds::next() {
  if (turn_ >= 0) ++round_;
  ++turn_;
  const uint64_t slices = way_.pieces.slices;
  for (; step_ < slices + Ways::kStaged; ++step_) {
    if (stage_ == Stage::up) {
      slice_ = step_;
      if (has_up_ && slice_ < slices && turn_ < rounds_of(Stage::up)) break;
      stage_ = Stage::down;
      turn_ = 0;
    }
    slice_ = step_ - Ways::kStaged;
    if (has_down_ && step_ >= Ways::kStaged && turn_ < rounds_of(Stage::down)) break;
    stage_ = Stage::up;
    turn_ = 0;
  }
  offset_ = slice_ * way_.pieces.piece_elements * element_;
  if (step_ < slices + Ways::kStaged) return true;
  const bool closes = !closed_ && lane_.ranks() > span_.columns.columns();
  stage_ = Stage::closing;
  closed_ = true;
  if (!closes) lane_.count_slices(round_ - lane_.slices());
  return closes;
}

int Rounds::per_slot(Stage stage) const {
  const size_t piece = way_.pieces.piece_elements * element_;
  const bool is_pair = stage == Stage::up && row_.reduces;
  return static_cast<int>(std::max<size_t>(1, (is_pair ? lane_.shape().pair_slot_bytes() : lane_.shape().slot_bytes) / piece));
}

// As many as the column with the most blocks needs; the others put nothing in the last one.
int Rounds::rounds_of(Stage stage) const {
  int most = 1;
  if (stage == Stage::down)
    most = items(0);
  else if (row_.reduces)
    most = span_.ways.blocks_of(signature_, way_, 0).size();
  else if (row_.givers == Who::root)
    most = blocks_of_root();
  return (most + per_slot(stage) - 1) / per_slot(stage);
}

// Of the buffer that the root gives.
int Rounds::blocks_of_root() const {
  if (row_.input == Extent::block_per_rank) return span_.columns.ranks();
  return span_.columns.columns() * span_.ways.blocks_of(signature_, way_, 0).size();
}

// How many blocks of a column go down on this host, and which they are, by their places in the column.
int Rounds::items(int column) const {
  const Blocks& blocks = span_.ways.blocks_of(signature_, way_, column);
  if (share_ == Share::all) return blocks.size();
  const int here = static_cast<int>(blocks.of(span_.columns.host()).size());
  return share_ == Share::of_this_host ? here : blocks.size() - here;
}

int Rounds::place_of(int column, int item) const {
  const Blocks& blocks = span_.ways.blocks_of(signature_, way_, column);
  if (share_ == Share::all) return item;
  const int first = blocks.begin[span_.columns.host()], behind = blocks.begin[span_.columns.host() + 1];
  if (share_ == Share::of_this_host) return first + item;
  return item < first ? item : item + behind - first;
}

// Of the rank's block among those of its column.
int Rounds::place_of_rank(int rank) const {
  const Columns& columns = span_.columns;
  return columns.by_rank(columns.carrier_of(rank)).begin[columns.host_of(rank)] + columns.local_of(rank) / columns.columns();
}

Awaited Rounds::may_put() const {
  if (is_column()) {
    const Crossing& crossing = *span_.crossing;
    if (stage_ == Stage::closing) return crossing.ended();
    if (stage_ == Stage::down) return crossing.received(slice_ + 1);
    if (is_fed_by_up_ && input_.is_staging() && slice_ >= input_.slices) return crossing.done(slice_ + 1 - input_.slices);
  }
  // What is reached already.
  return lane_.published(lane_.rank(), round_);
}

void Rounds::put() {
  if (stage_ == Stage::up) put_up();
  if (stage_ == Stage::down && is_column()) put_down();
  lane_.my_board().published.publish(round_ + 1);
  if (stage_ == Stage::up && turn_ == 0) take_own_up();
}

// The root's own column has what it brings in the user's buffer.
void Rounds::put_down() {
  if (is_root() || lane_.ranks() == 1) return;
  const int column = lane_.rank();
  const Blocks& blocks = span_.ways.blocks_of(signature_, way_, column);
  const int first = turn_ * per_slot(Stage::down);
  std::byte* slot = lane_.gather_slot(lane_.rank(), round_);
  for (int n = first; n < std::min(items(column), first + per_slot(Stage::down)); ++n) {
    const int place = place_of(column, n);
    const int block = blocks.numbers[place];
    copy_bytes(slot, output_.at(block, place, slice_), piece_bytes(block, slice_));
    slot += way_.pieces.piece_elements * element_;
  }
}

void Rounds::take(int peer) {
  if (stage_ == Stage::up) take_up(peer);
  if (stage_ == Stage::down && peer < span_.columns.columns()) take_down(peer);
}

void Rounds::take_down(int peer) {
  const Blocks& blocks = span_.ways.blocks_of(signature_, way_, peer);
  const int me = lane_.rank_of(lane_.rank());
  const bool takes_own = share_ == Share::of_this_host;
  if (signature_.root >= 0 && root_is_here_ && !is_root()) return;
  const int first = turn_ * per_slot(Stage::down);
  const std::byte* slot = lane_.gather_slot(peer, round_);
  for (int n = first; n < std::min(items(peer), first + per_slot(Stage::down)); ++n) {
    const int block = blocks.numbers[place_of(peer, n)];
    const size_t length = piece_bytes(block, slice_);
    if (!takes_own)
      to_result_(recv_at(block), slot, length);
    else if (block == me)
      to_result_(bytes(task_.call.recv) + offset_, slot, length);
    slot += way_.pieces.piece_elements * element_;
  }
}

void Rounds::finish() {
  if (!is_column()) return;
  Crossing& crossing = *span_.crossing;
  if (stage_ == Stage::up) {
    if (row_.reduces) add_partials();
    if (is_fed_by_up_ && turn_ + 1 == rounds_of(Stage::up)) crossing.make_ready(slice_ + 1);
  }
  if (stage_ == Stage::down && turn_ + 1 == rounds_of(Stage::down)) {
    take_own_down();
    crossing.release(slice_ + 1);
  }
  crossing.poll();
}

void Rounds::take_own_down() {
  if (share_ != Share::of_this_host) return;
  const int me = lane_.rank_of(lane_.rank());
  to_result_(bytes(task_.call.recv) + offset_, output_.at(me, place_of_rank(me), slice_), piece_bytes(me, slice_));
}

}  // namespace fccl
