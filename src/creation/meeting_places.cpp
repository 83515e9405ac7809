// Ports that are kept, and the ids of those who meet there.
#include "creation/meeting_places.h"

#include <utility>

#include "sockets/listening_address.h"

namespace fccl {

Result<MeetingPlaces> MeetingPlaces::hold(const Settings& settings, const Key& key) {
  const auto where = choose_address(settings);
  if (!where) return fail(where.error());
  auto held = hold_at(*where, settings);
  if (!held) return fail(std::move(held).error());
  const auto own = address_of(held->get());
  if (!own) return fail(own.error());
  return MeetingPlaces(std::move(*held), *own, digest(key, "fccl shrink", {}));
}

UniqueId MeetingPlaces::id_of(int rank) const { return {.root = of_ranks_[static_cast<size_t>(rank)], .key = key_}; }

Result<Bootstrap> MeetingPlaces::open(int rank) const {
  auto listener = listen_at_held(own_);
  if (!listener) return fail(std::move(listener).error());
  return Bootstrap{id_of(rank), std::move(*listener)};
}

}  // namespace fccl
