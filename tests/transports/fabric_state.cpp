// FabricState: what the endpoints of a Fabric share.
#include "transports/fabric_state.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace fccl::core::simulated {

bool Inbox::put(Notice& notice) {
  const std::scoped_lock lock(mutex_);
  if (notice.kind == Completion::Kind::message) {
    if (room_ == 0) return false;
    --room_;
  }
  notices_.push_back(std::move(notice));
  return true;
}

std::vector<Notice> Inbox::take() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(notices_, {});
}

void Inbox::make_room(int messages) {
  const std::scoped_lock lock(mutex_);
  room_ += messages;
}

uint64_t FabricState::add_endpoint(std::vector<std::shared_ptr<Inbox>> inboxes) {
  const std::scoped_lock lock(mutex_);
  endpoints_.push_back(std::move(inboxes));
  return endpoints_.size() - 1;
}

std::shared_ptr<Inbox> FabricState::inbox(uint64_t endpoint, uint64_t rail) {
  const std::scoped_lock lock(mutex_);
  if (endpoint >= endpoints_.size() || rail >= endpoints_[endpoint].size()) return nullptr;
  return endpoints_[endpoint][rail];
}

std::shared_ptr<Region> FabricState::add_region(uint64_t endpoint, std::span<std::byte> bytes, PeersMay peers_may) {
  auto region = std::make_shared<Region>();
  region->endpoint = endpoint;
  region->bytes = bytes;
  region->peers_may = peers_may;
  const std::scoped_lock lock(mutex_);
  regions_.push_back(region);
  region->number = regions_.size();
  return region;
}

void FabricState::release(Region& region) {
  const std::scoped_lock lock(region.mutex);
  region.released = true;
}

std::shared_ptr<Region> FabricState::region(uint64_t number) {
  const std::scoped_lock lock(mutex_);
  return number == 0 || number > regions_.size() ? nullptr : regions_[number - 1];
}

tl::unexpected<Error> FabricState::misuse(std::string sentence) const {
  if (options.abort_on_misuse) {
    std::fprintf(stderr, "simulated fabric: %s\n", sentence.c_str());
    std::abort();
  }
  return fail(fcclInvalidArgument, std::move(sentence));
}

}  // namespace fccl::core::simulated
