// Cross-memory attach: each rank of an AllGather or AlltoAll reads its blocks directly from its peers' memory, with a single
// copy.
#include "host/lane.h"
#include "host/offer.h"
#include "host/phases.h"
#include "host/slices.h"
#include "host/task.h"
#include "kernels/copy.h"
#include "segment/peer_memory.h"

namespace fccl::core {
namespace {

// Faults in the pages of piece k, which peers read next.
void bring_in_piece(const Lane& lane, const Collective& row, const SlicedInput& input, uint64_t k) {
  if (!row.has_pairs()) return bring_in(input.at(lane.rank(), k), input.length(lane.rank(), k));
  for (int i = 1; i < lane.ranks(); ++i) bring_in(input.at(lane.peer(i), k), input.length(lane.peer(i), k));
}

// Reads piece k of a peer's block for this rank; the block begins at `offset` in the peer's input. Returns false if it cannot
// be read.
bool take(const Lane& lane, int peer, size_t offset, const SlicedOutput& output, uint64_t k) {
  if (output.length(peer, k) == 0) return true;
  const auto* source = static_cast<const std::byte*>(offer_of(lane, peer).source) + offset + k * output.piece;
  return lane.reach.memory->read(peer, output.at(peer, k), source, output.length(peer, k));
}

}  // namespace

// A rank stays in the call until every peer has read its input. If its wait fails, it publishes the failure before it returns,
// and only then can its user overwrite the input. So a reader checks for a failure after reading, before it trusts the bytes.
Phase attach_move([[maybe_unused]] FrameMemory& frame, Lane& lane, Route route, Task task) {
  const SlicedInput input = input_of(task.call, lane.ranks(), route.piece);
  const SlicedOutput output = output_of(task.call, lane.ranks(), route.piece);
  const uint64_t first = lane.slices();
  const int me = lane.rank();
  bool all_read = true;
  copy_bytes(output.at(me, 0), input.at(me, 0), output.layout.bytes(me));
  for (uint64_t k = 0; k < output.count(); ++k) {
    if (lane.has_failed()) co_return Failed{};
    bring_in_piece(lane, task.call.signature.row(), input, k);
    lane.my_board().published.publish(first + k + 1);
    for (int i = 1; i < lane.ranks(); ++i) {
      co_await lane.published(lane.peer(i), first + k + 1);
      all_read = all_read && take(lane, lane.peer(i), input.layout.offset(me), output, k);
    }
    if (!all_read) lane.my_board().unread.publish(first + 1);
    lane.my_board().drained.publish(first + k + 1);
    if (k + 1 < output.count()) co_await Turn{lane.drained(me, first + k + 1)};
  }
  for (uint64_t k = 0; k < output.count(); ++k)
    for (int i = 1; i < lane.ranks(); ++i) co_await lane.drained(lane.peer(i), first + k + 1);
  lane.count_slices(output.count());
  if (lane.has_failed()) co_return Failed{};
  for (int i = 1; i < lane.ranks(); ++i) all_read = all_read && !lane.unread(lane.peer(i), first + 1).reached();
  if (all_read) co_return Done{};
  co_return GoOnBy{route_without_attach(lane, task.call)};
}

}  // namespace fccl::core
