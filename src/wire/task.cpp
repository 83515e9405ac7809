// How the buffers of a call of one rank per host are cut into chunks.
#include "wire/task.h"

namespace fccl {
namespace {

std::byte* bytes_of(const void* buffer) { return static_cast<std::byte*>(const_cast<void*>(buffer)); }

// One buffer, as one chunk or as one for each member, the last ones shorter.
void cut_buffer(WireTask& task, const Call& call, int members, plan::Cut cut) {
  const Signature& s = call.signature;
  const size_t parts = cut == plan::Cut::per_member ? static_cast<size_t>(members) : 1;
  task.total_bytes = s.bytes();
  task.chunk_bytes = (s.count + parts - 1) / parts * size_of(s.dtype);
  task.input = {bytes_of(call.send), 0, task.chunk_bytes};
  task.output = {bytes_of(call.recv), 0, task.chunk_bytes};
}

// A buffer per member, in one place or side by side.
void take_blocks(WireTask& task, const Call& call, int members) {
  task.chunk_bytes = call.signature.bytes();
  task.total_bytes = task.chunk_bytes * static_cast<size_t>(members);
}

}  // namespace

WireTask flat_task(const Call& call, uint64_t number, plan::Group group, int me, plan::Cut cut) {
  WireTask task;
  task.call = {number, call.signature, call.scalar};
  task.root = group.root;
  const size_t block = call.signature.bytes();
  const Chunks one_sent{bytes_of(call.send), me, block}, all_sent{bytes_of(call.send), 0, block};
  const Chunks one_received{bytes_of(call.recv), me, block}, all_received{bytes_of(call.recv), 0, block};
  const bool is_root = me == group.root;
  switch (call.signature.collective) {
    case fcclCollAllGather:
    case fcclCollGather:
      take_blocks(task, call, group.members);
      task.input = one_sent;
      task.output = all_received;
      task.copied_first = me;
      task.copied = call.signature.collective == fcclCollAllGather || is_root ? 1 : 0;
      break;
    case fcclCollReduceScatter:
    case fcclCollScatter:
      take_blocks(task, call, group.members);
      task.input = all_sent;
      task.output = one_received;
      task.copied_first = me;
      task.copied = call.signature.collective == fcclCollScatter && is_root ? 1 : 0;
      break;
    case fcclCollAllReduce:
    case fcclCollReduce:
      cut_buffer(task, call, group.members, cut);
      break;
    case fcclCollBroadcast:
      cut_buffer(task, call, group.members, cut);
      if (is_root) task.copied = cut == plan::Cut::per_member ? group.members : 1;
      break;
    case fcclCollBarrier:
    case fcclNumColls:
      break;
  }
  return task;
}

}  // namespace fccl
