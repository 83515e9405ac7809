// Gathers the facts of a call, and finds blocks in their columns.
#include "hierarchical/relay_context.h"

#include <algorithm>
#include <bit>

#include "hierarchical/inter_host_call.h"
#include "host/lane.h"
#include "host/route.h"

namespace fccl::core {
namespace {

RelayFacts facts_of(const RelayContext& context) {
  const Columns& columns = context.columns();
  return {.ranks = context.lane.ranks(),
          .columns = columns.columns(),
          .is_even = columns.is_even(),
          .root_is_here = context.root_is_here(),
          .is_root = context.is_root(),
          .hands_on = context.wire_plan.hands_on};
}

// A result that ranks send on is read again, so it should stay in the caches.
CopyBytes copy_to_result(const RelayContext& context) {
  const Collective& row = context.row();
  if (row.spreads() && context.rounds.feeds_wire) return copy_bytes;
  size_t bytes = context.layout().total();
  if (row.has_pairs()) bytes = context.task.call.output(context.columns().ranks()).total();
  if (context.rounds.share == RelayRounds::Share::of_this_host) bytes = context.layout().most();
  return bytes >= kTuning.streamed ? stream_bytes : copy_bytes;
}

}  // namespace

RelayContext::RelayContext(Lane& lane, HierarchicalLane& hierarchical, const Task& task, size_t longest)
    : lane(lane),
      hierarchical(hierarchical),
      task(task),
      me(lane.rank_of(lane.rank())),
      wire_plan(hierarchical.planner.wire_plan_of(task.call, longest)),
      rounds(rounds_of(row(), facts_of(*this))),
      element_bytes(size_of(signature().result_type())),
      widening_shift(std::countr_zero(signature().widening())),
      to_result(copy_to_result(*this)) {}

int RelayContext::place_of(int rank) const {
  return columns().by_rank(columns().carrier_of(rank)).begin[columns().host_of(rank)] +
         columns().local_of(rank) / columns().columns();
}

int RelayContext::items_down(int column) const {
  const Blocks& blocks = blocks_of(column);
  if (rounds.share == RelayRounds::Share::all) return blocks.size();
  const int here = static_cast<int>(blocks.of(columns().host()).size());
  return rounds.share == RelayRounds::Share::of_this_host ? here : blocks.size() - here;
}

int RelayContext::place_down(int column, int item) const {
  if (rounds.share == RelayRounds::Share::all) return item;
  const Blocks& blocks = blocks_of(column);
  const int first = blocks.begin[columns().host()], behind = blocks.begin[columns().host() + 1];
  if (rounds.share == RelayRounds::Share::of_this_host) return first + item;
  return item < first ? item : item + behind - first;
}

int RelayContext::per_slot(size_t slot_bytes) const {
  return static_cast<int>(std::max<size_t>(1, slot_bytes / whole_piece()));
}

const WireSide& RelayContext::input() const { return hierarchical.inter_host_call->input(); }

const WireSide& RelayContext::output() const { return hierarchical.inter_host_call->output(); }

}  // namespace fccl::core
