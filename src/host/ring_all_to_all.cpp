// The ring of AlltoAll and AlltoAllV: a rank puts its block for each peer into the slot of that pair, and takes its own blocks
// out of its peers' slots.
#include "host/offer.h"
#include "host/pair_counts.h"
#include "host/phases.h"
#include "host/put_slices.h"
#include "host/task.h"
#include "kernels/copy.h"

namespace fccl::core {
namespace {

void put_counts_for_peers(Lane& lane, const Call& call, uint64_t slice) {
  for (int i = 1; i < lane.ranks(); ++i) {
    const PairCounts counts = counts_for(call, lane.peer(i), lane.ranks());
    copy_bytes(lane.slots.pair_slot(lane.rank(), lane.peer(i), slice), &counts, sizeof counts);
  }
}

}  // namespace

// The first slice of AlltoAllV carries only the sizes that peers expect from each other.
Phase ring_all_to_all([[maybe_unused]] FrameMemory& frame, Lane& lane, Route route, Task task) {
  const SlicedInput input = input_of(task.call, lane.ranks(), route.piece);
  const SlicedOutput output = output_of(task.call, lane.ranks(), route.piece);
  const int me = lane.rank();
  if (task.call.uneven != nullptr) {
    put_counts_for_peers(lane, task.call, lane.slices());
    lane.my_board().published.publish(lane.slices() + 1);
    for (int i = 1; i < lane.ranks(); ++i) {
      const int peer = lane.peer(i);
      co_await lane.published(peer, lane.slices() + 1);
      PairCounts theirs;
      copy_bytes(&theirs, lane.slots.pair_slot(peer, me, lane.slices()), sizeof theirs);
      if (!agree(counts_for(task.call, peer, lane.ranks()), theirs)) co_return other_counts(lane.rank_of(peer), theirs);
    }
    lane.count_slices(1);
  }
  const uint64_t first = lane.slices();
  const uint64_t slices = Slices{longest_of_all(lane), input.piece}.count();
  // Peers may still read the counts, so later slices must not overlap their slots.
  const SlotRing ring = lane.slots.pair_ring(task.call.uneven != nullptr ? input.piece : input.longest_slice());
  const CopyBytes take = copy_of(route);
  for (uint64_t k = 0; k < slices; ++k) {
    const uint64_t slice = first + k;
    if (!lane.has_published(slice)) put_for_peers(lane, input, ring, slice, k);
    take(output.at(me, k), input.at(me, k), output.length(me, k));
    for (int i = 1; i < lane.ranks(); ++i) {
      const int peer = lane.peer(i);
      co_await lane.published(peer, slice + 1);
      take(output.at(peer, k), lane.slots.pair_slot(peer, me, ring, slice), output.length(peer, k));
    }
  }
  lane.count_slices(slices, {.pair = ring.stride});
  co_return Done{};
}

}  // namespace fccl::core
