// Ports that are kept, and the ids of those who meet there.
#include "communicator/meeting_places.h"

#include <utility>

#include "system/network_interface.h"

namespace fccl {

Result<MeetingPlaces> MeetingPlaces::hold(const std::string& interface_name, const Key& key) {
  const auto address = choose_address(interface_name);
  if (!address) return fail(address.error());
  auto held = hold_port(*address);
  if (!held) return fail(std::move(held).error());
  const auto own = address_of(held->get());
  if (!own) return fail(own.error());
  return MeetingPlaces(std::move(*held), *own, digest(key, "fccl shrink", {}));
}

UniqueId MeetingPlaces::id_of(int rank) const { return {of_ranks_[static_cast<size_t>(rank)], 0, key_}; }

Result<Bootstrap> MeetingPlaces::open(int rank) const {
  auto listener = listen_at_held(own_);
  if (!listener) return fail(std::move(listener).error());
  return Bootstrap{id_of(rank), std::move(*listener)};
}

}  // namespace fccl
