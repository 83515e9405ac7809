// Finds the wire's input and output: in the user's buffers if they can be there, else in staging memory.
#include "hierarchical/wire_sides.h"

#include "hierarchical/pair_blocks.h"
#include "host/lane.h"

namespace fccl::core {
namespace {

// Returns a side in staging memory, for elements of `element` bytes.
WireSide staged(const RelayContext& context, const Blocks& blocks, size_t element) {
  const Pieces& pieces = context.wire_plan.pieces;
  return {&blocks, pieces, Buffer::staging(pieces.piece_elements * element, blocks.size(), RoundSequence::kStaged)};
}

// `begin`: the layout's offset at which the buffer begins, since the buffer may hold only one block of it.
WireSide of_user(const RelayContext& context, const void* base, size_t begin) {
  return {&context.blocks_of(context.columns().local()),
          context.wire_plan.pieces,
          {RelayContext::bytes(base) - begin, context.layout(), context.whole_piece()}};
}

WireSide input_of(const RelayContext& context) {
  const Collective& row = context.row();
  const Signature& signature = context.signature();
  const Blocks& carried = context.blocks_of(context.columns().local());
  const bool is_fed = context.rounds.feeds_wire;
  if (row.reduces) return staged(context, carried, size_of(context.hierarchical.planner.partial_type(signature)));
  // Data that every rank gets is sent from the result.
  if (row.spreads() && (is_fed || !row.gives(context.me, signature.root))) return of_user(context, context.task.call.recv, 0);
  if (is_fed) return staged(context, carried, context.element_bytes);
  const size_t begin = row.output == Extent::block_per_rank ? context.layout().offset(context.me) : 0;
  return of_user(context, context.task.call.send, begin);
}

WireSide output_of(const RelayContext& context) {
  const Collective& row = context.row();
  const Blocks& carried = context.blocks_of(context.columns().local());
  const WireSide in_memory = staged(context, carried, context.element_bytes);
  const WireSide nowhere{&carried, context.wire_plan.pieces, {}};
  void* const result = context.task.call.recv;
  if (row.takers == Who::root) {
    if (context.is_root()) return of_user(context, result, 0);
    return row.reduces || context.root_is_here() ? in_memory : nowhere;
  }
  if (row.input != Extent::block_per_rank) return of_user(context, result, 0);
  if (row.givers == Who::root && context.root_is_here()) return nowhere;
  return context.columns().is_even() ? of_user(context, result, context.layout().offset(context.me)) : in_memory;
}

// Returns a side with a block for each pair of ranks, in staging memory.
WireSide staged_pairs(const RelayContext& context, const Blocks& blocks, const Layout& layout) {
  WireSide side = staged(context, blocks, context.element_bytes);
  side.pieces.blocks = layout;
  return side;
}

WireSide input_of_pairs(const RelayContext& context) {
  const PairBlocks& pairs = *context.hierarchical.pair_blocks;
  WireSide side = staged_pairs(context, pairs.given(), pairs.given_layout());
  if (!context.rounds.feeds_wire)
    side.buffer = {RelayContext::bytes(context.task.call.send), side.pieces.blocks, context.whole_piece()};
  return side;
}

WireSide output_of_pairs(const RelayContext& context) {
  const PairBlocks& pairs = *context.hierarchical.pair_blocks;
  WireSide side = staged_pairs(context, pairs.taken(), pairs.taken_layout());
  if (context.lane.ranks() == 1)
    side.buffer = {RelayContext::bytes(context.task.call.recv), side.pieces.blocks, context.whole_piece()};
  return side;
}

}  // namespace

WireTask wire_task_of(const RelayContext& context) {
  const Signature& signature = context.signature();
  const Columns& columns = context.columns();
  const WirePlanner& planner = context.hierarchical.planner;
  const bool has_pairs = context.row().has_pairs();
  WireTask task{.call = {context.task.number, signature},
                .steps = context.wire_plan.steps,
                .root = signature.root < 0 ? -1 : columns.host_of(signature.root),
                .by_dissemination = context.wire_plan.by_dissemination,
                .input = has_pairs ? input_of_pairs(context) : input_of(context),
                .output = has_pairs ? output_of_pairs(context) : output_of(context),
                .output_is_taken = context.rounds.has_down,
                .put = context.rounds.has_down || signature.root >= 0 ? copy_bytes : context.to_result,
                .element_bytes = context.element_bytes,
                .partial_bytes = size_of(planner.partial_type(signature)),
                .divisor = {static_cast<uint64_t>(columns.ranks())}};
  if (context.row().reduces) task.total = planner.total_kernel_of(signature);
  return task;
}

}  // namespace fccl::core
