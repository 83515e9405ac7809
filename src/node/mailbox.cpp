// The mailbox: small collectives, payload beside the word.
#include <cstddef>

#include "kernels/copy.h"
#include "node/phases.h"

namespace fccl {
namespace {

// The bytes of a rank's input, `input` and `output` being this rank's layouts.
size_t given_by(const Collective& row, const Layout& input, const Layout& output, int from) {
  return row.is_uneven() && !row.reduces ? output.bytes(from) : input.total();
}

// Every rank has entered the same call: takes this rank's part of it out of the boxes, its own first.
void deliver(Lane& lane, const Task& task) {
  const Signature& s = task.call.signature;
  const Collective& row = s.row();
  const Layout input = task.call.input(lane.ranks()), output = task.call.output(lane.ranks());
  if (output.total() == 0 || !row.takes(lane.rank(), s.root)) return;
  for (int i = 0; i < lane.ranks(); ++i) {
    const int from = i == 0 ? lane.rank() : lane.peer(i);
    if (!row.gives(from, s.root)) continue;
    const auto* payload =
        i == 0 ? static_cast<const std::byte*>(task.call.send) : lane.payload_of(from, given_by(row, input, output, from));
    const std::byte* block = payload + input.offset(lane.rank());
    if (!row.reduces) {
      copy_bytes(static_cast<std::byte*>(task.call.recv) + output.offset(from), block, output.bytes(from));
      continue;
    }
    lane.sources[from] = block;
    if (s.op == ReduceOp::premul_sum) lane.scalars[from] = i == 0 ? task.call.scalar : lane.record_of(from).scalar;
  }
  if (!row.reduces) return;
  const size_t count = row.is_uneven() ? output.total() / size_of(s.dtype) : s.count;
  task.reduce(task.call.recv, lane.sources.data(), lane.ranks(), count, lane.scalars.data());
}

}  // namespace

size_t mailbox_bytes(const Call& call, int ranks) {
  const Collective& row = call.signature.row();
  return row.is_uneven() && !row.reduces ? call.output(ranks).most() : call.input(ranks).total();
}

Phase alone([[maybe_unused]] FrameMemory& frame, Lane& lane, Task task) {
  deliver(lane, task);
  co_return Outcome{};
}

Phase mailbox([[maybe_unused]] FrameMemory& frame, Lane& lane, Task task) {
  const Signature& s = task.call.signature;
  const size_t bytes = s.row().gives(lane.rank(), s.root) ? task.call.input(lane.ranks()).total() : 0;
  lane.enter(task.call, task.number, task.call.send, bytes);
  for (int i = 1; i < lane.ranks(); ++i) {
    const int peer = lane.peer(i);
    co_await lane.entered(peer);
    if (!lane.agrees(peer)) co_return Outcome{lane.rank_of(peer)};
  }
  deliver(lane, task);
  co_return Outcome{};
}

}  // namespace fccl
