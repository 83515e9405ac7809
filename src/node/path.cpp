// The choice of a path, and the table of phases behind it.
#include "node/path.h"

#include <array>

#include "base/check.h"

namespace fccl {
namespace {

// The smallest block of an AllGather that is worth a call of the kernel.
constexpr size_t kAttached = 8 << 10;

// By collective; the barrier carries no data.
constexpr std::array<NodePhase, fcclNumColls> kRings{
    ring_all_reduce, ring_broadcast, ring_all_reduce, ring_all_gather, ring_reduce_scatter, ring_gather,
    ring_scatter,    nullptr,        ring_all_to_all, ring_all_gather, ring_reduce_scatter, ring_all_to_all};

}  // namespace

Path choose(const Call& call, const Lane& lane) {
  if (lane.ranks() == 1) return Path::alone;
  const fcclColl_t collective = call.signature.collective;
  // What others have to give is not known here.
  if (row_of(collective).has_private_counts()) return Path::mailbox;
  if (mailbox_bytes(call, lane.ranks()) <= lane.shape().mailbox_bytes) return Path::mailbox;
  const bool attaches = lane.attaches() && row_of(collective).gathers_on_all() && call.output(lane.ranks()).most() >= kAttached;
  return attaches ? Path::attach : Path::ring;
}

NodePhase phase_of(Path path, fcclColl_t collective) {
  switch (path) {
    case Path::alone:
      return alone;
    case Path::mailbox:
      return row_of(collective).has_private_counts() ? mailbox_all_to_all_v : mailbox;
    case Path::attach:
      return attach_all_gather;
    case Path::ring:
      check(kRings[collective] != nullptr, "every collective that carries data has a ring");
      return kRings[collective];
    case Path::across:
      break;
  }
  check(false, "a path within a host is one of four");
  return nullptr;
}

}  // namespace fccl
