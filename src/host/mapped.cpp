// Mapped memory, for collectives that only move bytes: each rank copies its blocks directly from its peers' inputs.
#include "host/lane.h"
#include "host/offer.h"
#include "host/phases.h"
#include "host/slices.h"
#include "host/task.h"
#include "kernels/copy.h"

namespace fccl::core {
// A rank stays in the call until every peer has read its input. If its wait fails, it publishes the failure before it returns,
// and only then can its user overwrite the input. So a reader checks for a failure after reading, before it trusts the bytes.
Phase mapped_move([[maybe_unused]] FrameMemory& frame, Lane& lane, Route route, Task task) {
  const Collective& row = task.call.signature.row();
  const int me = lane.rank(), root = task.call.signature.root;
  const SlicedInput input = input_of(task.call, lane.ranks(), route.piece);
  const SlicedOutput output = output_of(task.call, lane.ranks(), route.piece);
  const uint64_t first = lane.slices();
  const CopyBytes take = copy_of(route);
  for (uint64_t k = 0; k < output.count(); ++k) {
    for (int i = 0; i < lane.ranks(); ++i) {
      const int from = i == 0 ? me : lane.peer(i);
      if (!row.moves(from, me, root)) continue;
      const std::byte* block = (from == me ? input.base : lane.reach.inputs[from]) + input.layout.offset(me);
      take(output.at(from, k), block + k * output.piece, output.length(from, k));
    }
    lane.my_board().drained.publish(first + k + 1);
    if (lane.has_failed()) co_return Failed{};
    if (k + 1 < output.count()) co_await Turn{lane.drained(me, first + k + 1)};
  }
  for (uint64_t k = 0; k < output.count(); ++k)
    for (int i = 1; i < lane.ranks(); ++i)
      if (row.moves(me, lane.peer(i), root)) co_await lane.drained(lane.peer(i), first + k + 1);
  lane.count_slices(output.count());
  co_return done_unless(lane.has_failed());
}

}  // namespace fccl::core
