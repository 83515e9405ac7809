// Mapped memory, for AlltoAllV: ranks tell each other where their blocks begin, then copy them directly.
#include "host/lane.h"
#include "host/offer.h"
#include "host/pair_counts.h"
#include "host/phases.h"
#include "host/slices.h"
#include "host/task.h"
#include "kernels/copy.h"
#include "segment/mapped_peers.h"

namespace fccl::core {
namespace {

// A rank's message to a peer about the block that it has for the peer.
struct ToldBlock {
  PairCounts counts;
  uint64_t offset = 0;  // from the beginning of the sender's input
};

void tell_peers(Lane& lane, const Call& call) {
  const Layout input = call.input(lane.ranks());
  for (int i = 1; i < lane.ranks(); ++i) {
    const int peer = lane.peer(i);
    const ToldBlock told{counts_for(call, peer, lane.ranks()), input.offset(peer)};
    copy_bytes(lane.slots.pair_slot(lane.rank(), peer, lane.slices()), &told, sizeof told);
  }
}

ToldBlock block_told_by(const Lane& lane, int peer) {
  ToldBlock told;
  copy_bytes(&told, lane.slots.pair_slot(peer, lane.rank(), lane.slices()), sizeof told);
  return told;
}

// Notes the address of a peer's block in this process. Returns false if its length differs from what this rank expects, or if
// it lies outside the peer's arena; the peer's word is not trusted.
bool find_block(Lane& lane, const Call& call, int peer, const ToldBlock& told) {
  if (!agree(counts_for(call, peer, lane.ranks()), told.counts)) return false;
  lane.reach.inputs[peer] = lane.reach.mapped_peers->at(peer, offer_of(lane, peer).input + told.offset, told.counts.sends);
  return lane.reach.inputs[peer] != nullptr || told.counts.sends == 0;
}

void take_exchanged(const Lane& lane, const SlicedOutput& output, uint64_t k, CopyBytes take) {
  for (int i = 0; i < lane.ranks(); ++i) {
    const int from = i == 0 ? lane.rank() : lane.peer(i);
    if (const size_t length = output.length(from, k); length != 0)
      take(output.at(from, k), lane.reach.inputs[from] + k * output.piece, length);
  }
}

}  // namespace

// The first slice carries only what peers tell each other; later slices carry nothing through slots. mapped_move explains why
// ranks stay and check for failures.
Phase mapped_all_to_all_v([[maybe_unused]] FrameMemory& frame, Lane& lane, Route route, Task task) {
  const int me = lane.rank();
  tell_peers(lane, task.call);
  lane.my_board().published.publish(lane.slices() + 1);
  for (int i = 1; i < lane.ranks(); ++i) {
    const int peer = lane.peer(i);
    co_await lane.published(peer, lane.slices() + 1);
    const ToldBlock told = block_told_by(lane, peer);
    if (!find_block(lane, task.call, peer, told)) co_return other_counts(lane.rank_of(peer), told.counts);
  }
  lane.count_slices(1);
  lane.reach.inputs[me] = static_cast<const std::byte*>(task.call.send) + task.call.input(lane.ranks()).offset(me);
  const SlicedOutput output = output_of(task.call, lane.ranks(), route.piece);
  const uint64_t first = lane.slices(), slices = Slices{longest_of_all(lane), route.piece}.count();
  for (uint64_t k = 0; k < slices; ++k) {
    take_exchanged(lane, output, k, copy_of(route));
    lane.my_board().drained.publish(first + k + 1);
    if (lane.has_failed()) co_return Failed{};
    if (k + 1 < slices) co_await Turn{lane.drained(me, first + k + 1)};
  }
  for (int i = 1; i < lane.ranks(); ++i) co_await lane.drained(lane.peer(i), first + slices);
  lane.count_slices(slices, {.pair = Strides::kSeveralUnread});
  co_return done_unless(lane.has_failed());
}

}  // namespace fccl::core
