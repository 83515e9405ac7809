// Runs each round by its kind, and joins the rounds to the inter-host call.
#include "hierarchical/relay.h"

#include "hierarchical/counts_exchange.h"
#include "hierarchical/inter_host_call.h"
#include "hierarchical/pair_blocks.h"
#include "hierarchical/wire_sides.h"
#include "host/shards.h"

namespace fccl::core {

IntraHostRelay::IntraHostRelay(Lane& lane, HierarchicalLane& hierarchical, const Task& task, size_t longest)
    : context_(lane, hierarchical, task, longest),
      up_(context_),
      down_(context_),
      pairs_(context_),
      sequence_(context_.wire_plan.pieces.slices, turns(), context_.rounds.closes) {
  if (context_.is_column()) hierarchical.inter_host_call->prepare(wire_task_of(context_));
}

Turns IntraHostRelay::turns() const {
  Turns turns;
  if (context_.rounds.has_up) turns.up = has_pairs() ? pairs_.turns_up() : up_.turns();
  if (context_.rounds.has_down) turns.down = has_pairs() ? pairs_.turns_down() : down_.turns();
  return turns;
}

void IntraHostRelay::begin() {
  read_scalars(context_.lane, context_.signature());
  if (!context_.is_column()) return;
  InterHostCall& inter_host_call = *context_.hierarchical.inter_host_call;
  inter_host_call.begin();
  if (context_.rounds.feeds_wire) return;
  inter_host_call.make_ready(context_.wire_plan.pieces.slices);
  inter_host_call.poll();
}

bool IntraHostRelay::next() {
  const bool goes_on = sequence_.next();
  context_.round = sequence_.round();
  context_.number = context_.lane.slices() + sequence_.ended();
  context_.offset = context_.round.slice * context_.whole_piece();
  if (!goes_on) context_.lane.count_slices(sequence_.ended());
  return goes_on;
}

Awaited IntraHostRelay::may_put() const {
  if (context_.is_column()) {
    const InterHostCall& inter_host_call = *context_.hierarchical.inter_host_call;
    const uint64_t slice = context_.round.slice, staged = context_.input().buffer.slices;
    if (kind() == RoundKind::closing) return inter_host_call.ended();
    if (kind() == RoundKind::down) return inter_host_call.received(slice + 1);
    if (context_.stages_input() && slice >= staged) return inter_host_call.done(slice + 1 - staged);
  }
  // Waits for a point that is always reached, also on a lane where this rank has put nothing.
  return context_.lane.published(context_.lane.rank(), 0);
}

void IntraHostRelay::put() {
  const bool is_up = kind() == RoundKind::up;
  if (is_up && has_pairs()) {
    pairs_.put_up();
  } else if (is_up) {
    up_.put();
  } else if (kind() == RoundKind::down && context_.is_column()) {
    if (has_pairs())
      pairs_.put_down();
    else
      down_.put();
  }
  context_.lane.my_board().published.publish(context_.number + 1);
  if (!is_up || context_.round.turn > 0) return;
  if (has_pairs())
    pairs_.take_own_up();
  else
    up_.take_own();
}

void IntraHostRelay::take(int peer) {
  if (kind() == RoundKind::up) {
    if (has_pairs())
      pairs_.take_up(peer);
    else
      up_.take(peer);
  } else if (kind() == RoundKind::down) {
    if (has_pairs())
      pairs_.take_down(peer);
    else
      down_.take(peer);
  }
}

void IntraHostRelay::finish() {
  if (!context_.is_column()) return;
  InterHostCall& inter_host_call = *context_.hierarchical.inter_host_call;
  const uint64_t slices = context_.round.slice + 1;
  if (kind() == RoundKind::up) {
    if (context_.row().reduces) up_.add_partials();
    if (context_.rounds.feeds_wire && sequence_.is_last_turn()) inter_host_call.make_ready(slices);
  }
  if (kind() == RoundKind::down && sequence_.is_last_turn()) {
    if (has_pairs())
      pairs_.take_own_down();
    else
      down_.take_own();
    inter_host_call.release(slices);
  }
  inter_host_call.poll();
}

void IntraHostRelay::keep_counts() {
  if (context_.is_column()) context_.hierarchical.pair_blocks->read(context_.input(), context_.output());
}

}  // namespace fccl::core
