// Makes slots in this rank's GPU, and finds those of peers in theirs.
#include "device/peer_landing.h"

#include <utility>

namespace fccl::core {

PeerLanding::PeerLanding(std::shared_ptr<Device> device, size_t bytes, int rank, int ranks)
    : LandingSlots(bytes, rank, ranks), device_(std::move(device)), slots_(static_cast<size_t>(ranks)) {}

void PeerLanding::found(int rank, std::unique_ptr<SharedMemory> memory) {
  set_begin(rank, {nullptr, memory->memory().address()});
  slots_[static_cast<size_t>(rank)] = std::move(memory);
}

Result<std::unique_ptr<LandingSlots>> PeerLanding::make(std::shared_ptr<Device> device, size_t bytes, int rank, int ranks) {
  std::unique_ptr<PeerLanding> landing(new PeerLanding(std::move(device), bytes, rank, ranks));
  FCCL_TRY_ASSIGN(auto memory, SharedMemory::make(landing->device_, bytes));
  landing->found(rank, std::move(memory));
  return landing;
}

LandingPlace PeerLanding::place() const {
  LandingPlace place{.is_made = true};
  place.memory = slots_[static_cast<size_t>(rank())]->id();
  return place;
}

Result<Descriptor> PeerLanding::lend() const {
  return device_->lend(slots_[static_cast<size_t>(rank())]->memory());
}

Result<void> PeerLanding::reach(int peer, int /*pid*/, const LandingPlace& place, const Descriptor& lent) {
  FCCL_TRY_ASSIGN(auto memory, SharedMemory::find(device_, place.memory, lent, bytes()));
  found(peer, std::move(memory));
  return {};
}

}  // namespace fccl::core
