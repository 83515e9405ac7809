// Holds the tables of phases.
#include "host/path.h"

#include <iterator>
#include <span>

#include "base/check.h"

namespace fccl::core {
namespace {

// Indexed by collective; the barrier carries no data, so it has no phase here.
constexpr HostPhase kRings[] = {ring_all_reduce,     ring_broadcast,  ring_all_reduce,     ring_all_gather,
                                ring_reduce_scatter, ring_gather,     ring_scatter,        nullptr,
                                ring_all_to_all,     ring_all_gather, ring_reduce_scatter, ring_all_to_all};
constexpr HostPhase kMapped[] = {mapped_all_reduce, mapped_move, mapped_all_reduce, mapped_move,
                                 mapped_reduce,     mapped_move, mapped_move,       nullptr,
                                 mapped_move,       mapped_move, mapped_reduce,     mapped_all_to_all_v};

// Checks that no collective is missing: a missing one would end the process at its first large call.
static_assert(std::size(kRings) == fcclCollSend && std::size(kMapped) == fcclCollSend);

HostPhase in(std::span<const HostPhase> phases, fcclColl_t collective) {
  check(phases[collective] != nullptr, "a path is taken by the collectives that it has a phase for");
  return phases[collective];
}

}  // namespace

Route choose(const Call& call, const Lane& lane) {
  return route_of({call, lane.shape(), lane.reach.attaching, lane.reach.last_offers});
}

HostPhase phase_of(const Route& route, fcclColl_t collective) {
  switch (route.path) {
    case Path::alone:
      return alone;
    case Path::mailbox:
      return row_of(collective).has_private_counts() ? mailbox_all_to_all_v : mailbox;
    case Path::attach:
      return attach_move;
    case Path::ring:
      return in(kRings, collective);
    case Path::mapped:
      return route.variant == Variant::whole ? mapped_reduce : in(kMapped, collective);
    case Path::across:
      break;
  }
  check(false, "a path within a host is one of five");
  return nullptr;
}

}  // namespace fccl::core
