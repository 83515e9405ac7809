// The ring of AlltoAll: a rank puts what is for each peer into the slot of that pair, and takes what is for itself out of
// theirs.
#include "kernels/copy.h"
#include "node/pair_slots.h"
#include "node/phases.h"

namespace fccl {

Phase ring_all_to_all([[maybe_unused]] FrameMemory& frame, Lane& lane, Task task) {
  lane.enter(task.call, task.number, nullptr, 0);
  for (int i = 1; i < lane.ranks(); ++i) {
    co_await lane.entered(lane.peer(i));
    if (!lane.agrees(lane.peer(i))) co_return Outcome{lane.rank_of(lane.peer(i))};
  }
  const SlicedInput input = input_of(task.call, lane.ranks(), lane.shape().pair_slot_bytes());
  const SlicedOutput output = output_of(task.call, lane.ranks(), lane.shape().pair_slot_bytes());
  const int me = lane.rank();
  const uint64_t first = lane.slices();
  const auto take = output.layout.total() >= kStreamedBytes ? stream_bytes : copy_bytes;
  for (uint64_t k = 0; k < input.count(); ++k) {
    const uint64_t slice = first + k;
    put_for_peers(lane, input, slice, k);
    lane.my_board().published.publish(slice + 1);
    take(output.at(me, k), input.at(me, k), output.length(me, k));
    for (int i = 1; i < lane.ranks(); ++i) {
      const int peer = lane.peer(i);
      co_await lane.published(peer, slice + 1);
      take(output.at(peer, k), lane.pair_slot(peer, me, slice), output.length(peer, k));
    }
  }
  lane.count_slices(input.count());
  co_return Outcome{};
}

}  // namespace fccl
