// The choice of a path, and the table of phases behind it.
#include "communicator/choose.h"

#include "base/check.h"

namespace fccl {
namespace {

// The smallest block of an AllGather that is worth a call of the kernel.
constexpr size_t kAttached = 8 << 10;

Phase start_ring(Lane& lane, const Task& task) {
  switch (task.call.signature.collective) {
    case fcclCollAllGather:
      return ring_all_gather(lane.frame, lane, task);
    case fcclCollBroadcast:
      return ring_broadcast(lane.frame, lane, task);
    case fcclCollGather:
      return ring_gather(lane.frame, lane, task);
    case fcclCollScatter:
      return ring_scatter(lane.frame, lane, task);
    case fcclCollReduceScatter:
      return ring_reduce_scatter(lane.frame, lane, task);
    case fcclCollAllReduce:
    case fcclCollReduce:
      return ring_all_reduce(lane.frame, lane, task);
    case fcclCollBarrier:
    case fcclNumColls:
      break;
  }
  check(false, "every collective that carries data has a ring");
  return {};
}

}  // namespace

Path choose(const Signature& signature, const Lane& lane) {
  if (lane.ranks() == 1) return Path::alone;
  if (mailbox_bytes(signature, lane.ranks()) <= lane.shape().mailbox_bytes) return Path::mailbox;
  const bool attaches = lane.attaches() && signature.collective == fcclCollAllGather && signature.bytes() >= kAttached;
  return attaches ? Path::attach : Path::ring;
}

Phase start(Path path, Lane& lane, const Task& task) {
  switch (path) {
    case Path::alone:
      return alone(lane.frame, lane, task);
    case Path::mailbox:
      return mailbox(lane.frame, lane, task);
    case Path::attach:
      return attach_all_gather(lane.frame, lane, task);
    case Path::ring:
      return start_ring(lane, task);
    case Path::across:
      break;
  }
  check(false, "a path within a host is one of four");
  return {};
}

}  // namespace fccl
