// Mapped memory, for collectives that reduce: each rank reduces its block directly from its peers' inputs.
#include <algorithm>

#include "host/offer.h"
#include "host/shards.h"
#include "host/slices.h"
#include "kernels/copy.h"

namespace fccl::core {
namespace {

// The bytes reduced at a time. A result is then still in a cache when peers take it, and the thread's other work gets a turn.
constexpr size_t kReducedPiece = 256 << 10;

// The size from which peers read results from outputs instead of slots. A shorter result goes to a slot, so that its rank need
// not wait until peers have taken it.
constexpr size_t kInOutputs = 256 << 10;

// Reduces one piece of this rank's block, which lies at `offset` in every rank's input.
void reduce_piece(Lane& lane, const Task& task, size_t offset, std::byte* result, size_t bytes) {
  for (int rank = 0; rank < lane.ranks(); ++rank) lane.sources[rank] = lane.inputs[rank] + offset;
  const size_t count = bytes / size_of(task.call.signature.dtype);
  task.reduce(result, lane.sources.data(), lane.ranks(), count, lane.scalars.data());
}

bool every_output_is_mapped(const Lane& lane) {
  for (int rank = 0; rank < lane.ranks(); ++rank)
    if (lane.outputs[rank] == nullptr) return false;
  return true;
}

}  // namespace

// mapped_move explains why ranks stay and check for failures. An in-place rank overwrites only its own block, which no peer
// reads. The one block of an AllReduce is the whole vector.
Phase mapped_reduce([[maybe_unused]] FrameMemory& frame, Lane& lane, Task task) {
  enter_with_offer(lane, task);
  for (int i = 1; i < lane.ranks(); ++i) {
    co_await lane.entered(lane.peer(i));
    if (!lane.agrees(lane.peer(i))) co_return Outcome{lane.rank_of(lane.peer(i))};
  }
  const Path here = task.call.signature.collective == fcclCollAllReduce ? Path::whole : Path::mapped;
  if (settles_elsewhere(lane, task, here)) co_return Outcome{.settled = true};
  read_scalars(lane, task.call.signature);
  const int me = lane.rank();
  const SlicedInput input = input_of(task.call, lane.ranks(), kReducedPiece);
  const SlicedOutput output = output_of(task.call, lane.ranks(), kReducedPiece * task.call.signature.widening());
  const uint64_t first = lane.slices();
  for (uint64_t k = 0; k < input.count(); ++k) {
    if (const size_t length = input.length(me, k); length != 0)
      reduce_piece(lane, task, input.layout.offset(me) + k * input.piece, output.at(me, k), length);
    lane.my_board().drained.publish(first + k + 1);
    if (lane.has_failed()) co_return Outcome{.failed = true};
    if (k + 1 < input.count()) co_await Turn{lane.drained(me, first + k + 1)};
  }
  for (uint64_t k = 0; k < input.count(); ++k)
    for (int i = 1; i < lane.ranks(); ++i) co_await lane.drained(lane.peer(i), first + k + 1);
  lane.count_slices(input.count());
  co_return Outcome{.failed = lane.has_failed()};
}

// For each piece, a rank reduces its shard, then takes its peers' results. It reads long results from the peers' outputs if all
// of these are mapped and every rank takes the result; else from gather slots. An in-place rank overwrites a peer's shard only
// after the peer's result is there, so after the peer has read it. A slot can be reused as in the ring: a rank waits for all
// results of a piece, so it has taken those of the piece before.
Phase mapped_all_reduce([[maybe_unused]] FrameMemory& frame, Lane& lane, Task task) {
  enter_with_offer(lane, task);
  for (int i = 1; i < lane.ranks(); ++i) {
    co_await lane.entered(lane.peer(i));
    if (!lane.agrees(lane.peer(i))) co_return Outcome{lane.rank_of(lane.peer(i))};
  }
  if (settles_elsewhere(lane, task, Path::mapped)) co_return Outcome{.settled = true};
  const Signature& signature = task.call.signature;
  read_scalars(lane, signature);
  const int me = lane.rank();
  const size_t widening = signature.widening();
  const bool in_outputs = signature.root < 0 && signature.result_bytes() >= kInOutputs && every_output_is_mapped(lane);
  const size_t piece = in_outputs ? kReducedPiece : lane.shape().slot_bytes / widening;
  const SlicedInput input{static_cast<const std::byte*>(task.call.send), shards_of(signature, signature.dtype, lane.ranks()),
                          piece};
  const SlicedOutput output{static_cast<std::byte*>(task.call.recv),
                            shards_of(signature, signature.result_type(), lane.ranks()), piece * widening};
  const SlotRing results = lane.gather_ring(std::min<size_t>(output.longest_slice(), lane.shape().slot_bytes));
  const uint64_t first = lane.slices();
  const bool takes_result = signature.root < 0 || signature.root == me;
  for (uint64_t k = 0; k < input.count(); ++k) {
    const uint64_t slice = first + k;
    const size_t length = input.length(me, k);
    std::byte* result = in_outputs ? output.at(me, k) : lane.gather_slot(me, results, slice);
    if (length != 0) reduce_piece(lane, task, input.layout.offset(me) + k * piece, result, length);
    lane.my_board().results_published.publish(slice + 1);
    if (lane.has_failed()) co_return Outcome{.failed = true};
    if (takes_result && !in_outputs) copy_bytes(output.at(me, k), result, length * widening);
    for (int i = 1; i < lane.ranks(); ++i) {
      const int peer = lane.peer(i);
      co_await lane.results_published(peer, slice + 1);
      if (!takes_result) continue;
      const std::byte* theirs = in_outputs ? lane.outputs[peer] + output.layout.offset(peer) + k * output.piece
                                           : lane.gather_slot(peer, results, slice);
      copy_bytes(output.at(peer, k), theirs, output.length(peer, k));
    }
    lane.my_board().drained.publish(slice + 1);
    if (k + 1 < input.count()) co_await Turn{lane.drained(me, slice + 1)};
  }
  for (int i = 1; in_outputs && i < lane.ranks(); ++i) co_await lane.drained(lane.peer(i), first + input.count());
  lane.count_slices(input.count());
  co_return Outcome{.failed = lane.has_failed()};
}

}  // namespace fccl::core
