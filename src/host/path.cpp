// Holds the tables of phases, and the rule for a call's first path.
#include "host/path.h"

#include <iterator>
#include <span>

#include "base/check.h"
#include "host/offer.h"

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

// Begins on the path on which most calls end; the offers (host/offer.h) may then change it.
Path choose(const Call& call, const Lane& lane) {
  if (lane.ranks() == 1) return Path::alone;
  const fcclColl_t collective = call.signature.collective;
  // A rank does not know the other ranks' counts here.
  if (row_of(collective).has_private_counts()) return Path::mailbox;
  if (mailbox_bytes(call, lane.ranks()) <= lane.shape().box_bytes()) return Path::mailbox;
  if (lane.settled() == Path::mapped) return Path::mapped;
  if (lane.settled() == Path::whole) return collective == fcclCollAllReduce ? Path::whole : Path::mapped;
  return may_attach(lane, call) ? Path::attach : Path::ring;
}

HostPhase phase_of(Path path, fcclColl_t collective) {
  switch (path) {
    case Path::alone:
      return alone;
    case Path::mailbox:
      return row_of(collective).has_private_counts() ? mailbox_all_to_all_v : mailbox;
    case Path::attach:
      return attach_move;
    case Path::ring:
      return in(kRings, collective);
    case Path::mapped:
      return in(kMapped, collective);
    case Path::whole:
      check(collective == fcclCollAllReduce, "a whole vector is reduced by AllReduce alone");
      return mapped_reduce;
    case Path::across:
      break;
  }
  check(false, "a path within a host is one of six");
  return nullptr;
}

}  // namespace fccl::core
