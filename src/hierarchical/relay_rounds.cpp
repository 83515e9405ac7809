// Derives the rounds from the collective's row, and walks them.
#include "hierarchical/relay_rounds.h"

namespace fccl::core {
namespace {

bool has_some_here(Who who, const RelayFacts& facts) { return who == Who::all || (who == Who::root && facts.root_is_here); }

RelayRounds::Share share_of(const Collective& row) {
  if (row.output == Extent::block_per_rank) return RelayRounds::Share::of_other_hosts;
  return row.input == Extent::block_per_rank ? RelayRounds::Share::of_this_host : RelayRounds::Share::all;
}

bool feeds_wire(const Collective& row, const RelayFacts& facts) {
  if (row.has_pairs()) return facts.ranks > facts.columns;
  if (row.reduces) return true;
  const bool leaves = has_some_here(row.givers, facts) && (row.takers == Who::all || !facts.root_is_here);
  if (!leaves) return false;
  if (row.givers == Who::root) return !facts.is_root;
  return !facts.is_even || (facts.hands_on && row.takers == Who::all);
}

}  // namespace

RelayRounds rounds_of(const Collective& row, const RelayFacts& facts) {
  const bool gives = has_some_here(row.givers, facts), takes = has_some_here(row.takers, facts);
  const bool comes = takes && (row.givers == Who::all || !facts.root_is_here);
  const bool scatters = row.input == Extent::block_per_rank && !row.has_pairs();
  return {.has_up = gives && (row.reduces || takes || !facts.is_even),
          .has_down = comes && (scatters ? !facts.is_even : facts.ranks > 1),
          .closes = facts.ranks > facts.columns,
          .share = share_of(row),
          .feeds_wire = feeds_wire(row, facts)};
}

bool RoundSequence::next() {
  if (round_.turn >= 0) ++ended_;
  ++round_.turn;
  for (; step_ < slices_ + kStaged; ++step_) {
    if (round_.kind == RoundKind::up) {
      round_.slice = step_;
      if (round_.slice < slices_ && round_.turn < turns_.up) return true;
      round_.kind = RoundKind::down;
      round_.turn = 0;
    }
    round_.slice = step_ - kStaged;
    if (step_ >= kStaged && round_.turn < turns_.down) return true;
    round_.kind = RoundKind::up;
    round_.turn = 0;
  }
  const bool closes = closes_ && round_.kind != RoundKind::closing;
  round_.kind = RoundKind::closing;
  return closes;
}

}  // namespace fccl::core
