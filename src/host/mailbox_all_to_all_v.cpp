// The mailbox of AlltoAllV: a box holds the counts for all peers, then the blocks. Used if every rank's box has room.
#include "host/lane.h"
#include "host/offer.h"
#include "host/pair_counts.h"
#include "host/phases.h"
#include "host/task.h"
#include "kernels/copy.h"

namespace fccl::core {
namespace {

size_t counts_bytes(const Lane& lane) { return static_cast<size_t>(lane.ranks()) * sizeof(PairCounts); }

// True if the blocks for all peers fit into this rank's box.
bool fits(const Lane& lane, const Layout& input) {
  const size_t room = lane.shape().mailbox_bytes, counts = counts_bytes(lane);
  return counts <= room && input.total() - input.bytes(lane.rank()) <= room - counts;
}

void fill(const Lane& lane, const Call& call, std::byte* box) {
  const Layout input = call.input(lane.ranks());
  std::byte* block = box + counts_bytes(lane);
  for (int peer = 0; peer < lane.ranks(); ++peer) {
    const PairCounts counts = counts_for(call, peer, lane.ranks());
    copy_bytes(box + static_cast<size_t>(peer) * sizeof counts, &counts, sizeof counts);
    if (peer == lane.rank()) continue;
    copy_bytes(block, static_cast<const std::byte*>(call.send) + input.offset(peer), input.bytes(peer));
    block += input.bytes(peer);
  }
}

PairCounts told_by(const Lane& lane, int peer, int of) {
  PairCounts counts;
  copy_bytes(&counts, lane.box_payload_of(peer) + static_cast<size_t>(of) * sizeof counts, sizeof counts);
  return counts;
}

// Returns the offset of this rank's block in a peer's box: after the blocks for lower ranks.
size_t offset_in_box(const Lane& lane, int peer) {
  size_t offset = counts_bytes(lane);
  for (int other = 0; other < lane.rank(); ++other)
    if (other != peer) offset += told_by(lane, peer, other).sends;
  return offset;
}

// True if every rank, including this one, has put all its blocks into its box.
bool all_in_boxes(const Lane& lane, bool mine) {
  bool all = mine;
  for (int i = 1; i < lane.ranks(); ++i) all = all && *lane.payload_of(lane.peer(i), 1) != std::byte{0};
  return all;
}

void take(const Lane& lane, const Call& call, int peer) {
  const Layout output = call.output(lane.ranks());
  copy_bytes(static_cast<std::byte*>(call.recv) + output.offset(peer), lane.box_payload_of(peer) + offset_in_box(lane, peer),
             output.bytes(peer));
}

}  // namespace

Phase mailbox_all_to_all_v([[maybe_unused]] FrameMemory& frame, Lane& lane, [[maybe_unused]] Route route, Task task) {
  const Layout input = task.call.input(lane.ranks());
  const bool beside = fits(lane, input);
  if (beside) fill(lane, task.call, lane.next_box_payload());
  const std::byte mark{beside};
  lane.enter(task.call, task.number, &mark, sizeof mark);
  for (int i = 1; i < lane.ranks(); ++i) {
    co_await lane.entered(lane.peer(i));
    if (!lane.agrees(lane.peer(i))) co_return Differs{lane.rank_of(lane.peer(i))};
  }
  if (!all_in_boxes(lane, beside)) co_return PastMailbox{};
  for (int i = 1; i < lane.ranks(); ++i) {
    const PairCounts theirs = told_by(lane, lane.peer(i), lane.rank());
    if (!agree(counts_for(task.call, lane.peer(i), lane.ranks()), theirs))
      co_return other_counts(lane.rank_of(lane.peer(i)), theirs);
  }
  const int me = lane.rank();
  copy_bytes(static_cast<std::byte*>(task.call.recv) + task.call.output(lane.ranks()).offset(me),
             static_cast<const std::byte*>(task.call.send) + input.offset(me), input.bytes(me));
  for (int i = 1; i < lane.ranks(); ++i) take(lane, task.call, lane.peer(i));
  co_return Done{};
}

}  // namespace fccl::core
