// Holds the table of phases.
#include "host/path.h"

#include "base/check.h"
#include "base/collective.h"
#include "host/phases.h"

namespace fccl::core {
namespace {

// The phases of a collective that depend on it; null where it takes neither path.
struct HostPhases {
  fcclColl_t collective;
  HostPhase ring;
  HostPhase mapped;
};

constexpr HostPhases kPhases[] = {
    {fcclCollAllReduce, ring_all_reduce, mapped_all_reduce},
    {fcclCollBroadcast, ring_broadcast, mapped_move},
    {fcclCollReduce, ring_all_reduce, mapped_all_reduce},
    {fcclCollAllGather, ring_all_gather, mapped_move},
    {fcclCollReduceScatter, ring_reduce_scatter, mapped_reduce},
    {fcclCollGather, ring_gather, mapped_move},
    {fcclCollScatter, ring_scatter, mapped_move},
    {fcclCollBarrier, nullptr, nullptr},  // carries no data, so it goes by the mailbox
    {fcclCollAlltoAll, ring_all_to_all, mapped_move},
    {fcclCollAllGatherV, ring_all_gather, mapped_move},
    {fcclCollReduceScatterV, ring_reduce_scatter, mapped_reduce},
    {fcclCollAlltoAllV, ring_all_to_all, mapped_all_to_all_v},
};

consteval bool has_each_collective_in_its_row() {
  size_t row = 0;
  for (const HostPhases& phases : kPhases)
    if (phases.collective != row++) return false;
  return row == fcclCollSend;
}
static_assert(has_each_collective_in_its_row(), "a collective without a row would end the process at its first large call");

HostPhase present(HostPhase phase) {
  check(phase != nullptr, "a path is taken by the collectives that it has a phase for");
  return phase;
}

}  // namespace

HostPhase phase_of(const Route& route, fcclColl_t collective) {
  switch (route.path) {
    case Path::alone:
      return alone;
    case Path::mailbox:
      return row_of(collective).has_private_counts() ? mailbox_all_to_all_v : mailbox;
    case Path::attach:
      return attach_move;
    case Path::ring:
      return present(kPhases[collective].ring);
    case Path::mapped:
      return route.variant == Variant::whole ? mapped_reduce : present(kPhases[collective].mapped);
    case Path::across:
      break;
  }
  check(false, "a path within a host is one of five");
  return nullptr;
}

}  // namespace fccl::core
