// Reserves ports, and derives the ids of the ranks that meet there.
#include "bootstrap/meeting_places.h"

#include <fmt/format.h>

#include <utility>

#include "bootstrap/bootstrap.h"
#include "settings/settings.h"
#include "sockets/listening_address.h"

namespace fccl::core {

Result<MeetingPlaces> MeetingPlaces::hold(const Settings& settings, const UniqueId& id) {
  const auto way = local_address_towards(id.root);
  if (!way) return fail(fcclSystemError, fmt::format("this host has no way to {} any more", host_text(id.root)));
  FCCL_TRY_ASSIGN(auto held, hold_at(*way, settings));
  FCCL_TRY_ASSIGN(const auto own, address_of(held.get()));
  return MeetingPlaces(std::move(held), own, digest(id.key, "fccl shrink", {}));
}

UniqueId MeetingPlaces::id_of(int rank) const { return {.root = of_ranks_[static_cast<size_t>(rank)], .key = key_}; }

Result<Bootstrap> MeetingPlaces::open(int rank) const {
  FCCL_TRY_ASSIGN(auto listener, listen_at_held(own_));
  return Bootstrap{.id = id_of(rank), .listener = std::move(listener)};
}

}  // namespace fccl::core
