// The choice of a path, and the table of phases behind it.
#include "node/path.h"

#include <array>

#include "base/check.h"

namespace fccl {
namespace {

// The smallest block of an AllGather that is worth a call of the kernel.
constexpr size_t kAttached = 8 << 10;

using Ring = Phase (*)(FrameMemory& frame, Lane& lane, Task task);

// By collective; the barrier carries no data.
constexpr std::array<Ring, fcclNumColls> kRings{ring_all_reduce,     ring_broadcast, ring_all_reduce, ring_all_gather,
                                                ring_reduce_scatter, ring_gather,    ring_scatter,    nullptr,
                                                ring_all_to_all};

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
    case Path::ring: {
      const Ring ring = kRings[task.call.signature.collective];
      check(ring != nullptr, "every collective that carries data has a ring");
      return ring(lane.frame, lane, task);
    }
    case Path::across:
      break;
  }
  check(false, "a path within a host is one of four");
  return {};
}

}  // namespace fccl
