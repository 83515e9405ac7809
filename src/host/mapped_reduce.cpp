// Mapped memory, for collectives that reduce: each rank reduces its block directly from its peers' inputs.
#include <algorithm>
#include <array>

#include "host/offer.h"
#include "host/phases.h"
#include "host/shards.h"
#include "host/slices.h"
#include "host/task.h"
#include "kernels/copy.h"

namespace fccl::core {
namespace {

// Reduces one piece of this rank's block, which lies at `offset` in every rank's input.
void reduce_piece(Lane& lane, const Task& task, size_t offset, std::byte* result, size_t bytes) {
  for (int rank = 0; rank < lane.ranks(); ++rank) lane.sources[rank] = lane.reach.inputs[rank] + offset;
  const size_t count = bytes / size_of(task.call.signature.dtype);
  task.reduce(result, lane.sources.data(), lane.ranks(), count, lane.scalars.data());
}

// Reduces a piece of which peers read the result. A rank that writes its slots past the caches writes the result so, too, by
// parts that stay in its own cache meanwhile.
void reduce_piece_for_peers(Lane& lane, const Task& task, size_t offset, std::byte* result, size_t bytes) {
  if (lane.slots.put == copy_bytes) return reduce_piece(lane, task, offset, result, bytes);
  alignas(64) std::array<std::byte, 16 << 10> reduced;
  const size_t widening = task.call.signature.widening();
  const Slices parts{bytes, reduced.size() / widening};
  for (uint64_t part = 0; part < parts.count(); ++part) {
    reduce_piece(lane, task, offset + parts.offset(part), reduced.data(), parts.length(part));
    lane.slots.put(result + parts.offset(part) * widening, reduced.data(), parts.length(part) * widening);
  }
}

}  // namespace

// mapped_move explains why ranks stay and check for failures. An in-place rank overwrites only its own block, which no peer
// reads. The one block of an AllReduce is the whole vector.
Phase mapped_reduce([[maybe_unused]] FrameMemory& frame, Lane& lane, Route route, Task task) {
  read_scalars(lane, task.call.signature);
  const int me = lane.rank();
  const SlicedInput input = input_of(task.call, lane.ranks(), route.piece);
  const SlicedOutput output = output_of(task.call, lane.ranks(), route.piece * task.call.signature.widening());
  const uint64_t first = lane.slices();
  for (uint64_t k = 0; k < input.count(); ++k) {
    if (const size_t length = input.length(me, k); length != 0)
      reduce_piece(lane, task, input.layout.offset(me) + k * input.piece, output.at(me, k), length);
    lane.my_board().drained.publish(first + k + 1);
    if (lane.has_failed()) co_return Failed{};
    if (k + 1 < input.count()) co_await Turn{lane.drained(me, first + k + 1)};
  }
  for (uint64_t k = 0; k < input.count(); ++k)
    for (int i = 1; i < lane.ranks(); ++i) co_await lane.drained(lane.peer(i), first + k + 1);
  lane.count_slices(input.count());
  co_return done_unless(lane.has_failed());
}

// For each piece, a rank reduces its shard, then takes its peers' results. It reads long results from the peers' outputs if all
// of these are mapped and every rank takes the result; else from gather slots. An in-place rank overwrites a peer's shard only
// after the peer's result is there, so after the peer has read it. A rank writes such a result past the
// caches between far processors, since the lines lie in the peer's cache. A slot can be reused as in the ring: a rank waits for
// all results of a piece, so it has taken those of the piece before.
Phase mapped_all_reduce([[maybe_unused]] FrameMemory& frame, Lane& lane, Route route, Task task) {
  const Signature& signature = task.call.signature;
  read_scalars(lane, signature);
  const int me = lane.rank();
  const size_t widening = signature.widening();
  const bool in_outputs = route.to_outputs;
  const size_t piece = route.piece;
  const SlicedInput input{static_cast<const std::byte*>(task.call.send), shards_of(signature, signature.dtype, lane.ranks()),
                          piece};
  const SlicedOutput output{static_cast<std::byte*>(task.call.recv),
                            shards_of(signature, signature.result_type(), lane.ranks()), piece * widening};
  const SlotRing results = lane.slots.gather_ring(std::min<size_t>(output.longest_slice(), lane.shape().slot_bytes));
  const uint64_t first = lane.slices();
  const bool takes_result = signature.root < 0 || signature.root == me;
  for (uint64_t k = 0; k < input.count(); ++k) {
    const uint64_t slice = first + k;
    const size_t length = input.length(me, k);
    std::byte* result = in_outputs ? output.at(me, k) : lane.slots.gather_slot(me, results, slice);
    if (length != 0) reduce_piece_for_peers(lane, task, input.layout.offset(me) + k * piece, result, length);
    lane.my_board().results_published.publish(slice + 1);
    if (lane.has_failed()) co_return Failed{};
    if (takes_result && !in_outputs) copy_bytes(output.at(me, k), result, length * widening);
    for (int i = 1; i < lane.ranks(); ++i) {
      const int peer = lane.peer(i);
      co_await lane.results_published(peer, slice + 1);
      if (!takes_result) continue;
      const std::byte* theirs = in_outputs ? lane.reach.outputs[peer] + output.layout.offset(peer) + k * output.piece
                                           : lane.slots.gather_slot(peer, results, slice);
      lane.slots.put(output.at(peer, k), theirs, output.length(peer, k));
    }
    lane.my_board().drained.publish(slice + 1);
    if (k + 1 < input.count()) co_await Turn{lane.drained(me, slice + 1)};
  }
  for (int i = 1; in_outputs && i < lane.ranks(); ++i) co_await lane.drained(lane.peer(i), first + input.count());
  lane.count_slices(input.count(), {.gather = results.stride});
  co_return done_unless(lane.has_failed());
}

}  // namespace fccl::core
