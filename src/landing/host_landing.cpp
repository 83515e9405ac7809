// Takes slots from the arena or from those that the process has kept, and pins them and those of peers.
#include "landing/host_landing.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>

#include "arena/arena.h"
#include "os/per_process.h"

namespace fccl::core {
namespace {

// Slots of earlier landings, by their bytes.
struct KeptSlots {
  std::mutex mutex;
  std::multimap<size_t, std::byte*> of;
};
constinit PerProcess<KeptSlots> kept_slots;

Result<std::byte*> take_slots(size_t bytes) {
  {
    KeptSlots& kept = kept_slots.get();
    const std::scoped_lock lock(kept.mutex);
    if (const auto found = kept.of.find(bytes); found != kept.of.end()) {
      std::byte* const slots = found->second;
      kept.of.erase(found);
      return slots;
    }
  }
  FCCL_TRY_ASSIGN(void* const slots, process_arena().allocate(bytes));
  return static_cast<std::byte*>(slots);
}

void keep_slots(size_t bytes, std::byte* slots) {
  KeptSlots& kept = kept_slots.get();
  const std::scoped_lock lock(kept.mutex);
  kept.of.emplace(bytes, slots);
}

}  // namespace

HostLanding::HostLanding(std::shared_ptr<Device> device, size_t bytes, int rank, int ranks)
    : LandingSlots(bytes, rank, ranks), device_(std::move(device)), slots_(static_cast<size_t>(ranks)) {}

void HostLanding::found(int rank, std::byte* begin, std::unique_ptr<SharedPin> pin) {
  set_begin(rank, {begin, pin->device_address(begin)});
  slots_[static_cast<size_t>(rank)].pin = std::move(pin);
}

Result<std::unique_ptr<LandingSlots>> HostLanding::make(std::shared_ptr<Device> device, size_t bytes, int rank, int ranks) {
  std::unique_ptr<HostLanding> landing(new HostLanding(std::move(device), bytes, rank, ranks));
  FCCL_TRY_ASSIGN(landing->own_, take_slots(bytes));
  FCCL_TRY_ASSIGN(auto pin, SharedPin::of_own(landing->device_, {landing->own_, bytes}));
  landing->found(rank, landing->own_, std::move(pin));
  return landing;
}

// A fork has neither the arena nor the GPU.
HostLanding::~HostLanding() {
  slots_.clear();
  if (own_ != nullptr && forks_ == forks()) keep_slots(bytes(), own_);
}

LandingPlace HostLanding::place() const {
  return {.is_made = true, .arena = name_of(*own_reservation()), .offset = offset_in_arena(own_, bytes())};
}

Result<void> HostLanding::reach(int peer, int pid, const LandingPlace& place, const Descriptor& /*lent*/) {
  auto& arena = slots_[static_cast<size_t>(peer)].arena;
  FCCL_TRY_ASSIGN(arena, PeerArena::map(pid, place.arena));
  const std::byte* const begin = arena->at(place.offset, bytes());
  if (begin == nullptr || place.offset % kPageBytes != 0)
    return fail(fcclSystemError, fmt::format("the slots of the process with pid {} lie outside of its arena", pid));
  std::byte* const slots = const_cast<std::byte*>(begin);
  const Reservation* const own = own_reservation();
  if (own != nullptr && own->holds(begin)) {
    FCCL_TRY_ASSIGN(auto pin, SharedPin::of_own(device_, {slots, bytes()}));
    found(peer, slots, std::move(pin));
    return {};
  }
  if (!device_->limits().pins_read_only)
    return fail(fcclSystemError, fmt::format("{} pins no memory for reading alone", device_->limits().name));
  FCCL_TRY_ASSIGN(auto pin, SharedPin::of_peer(device_, {begin, bytes()}));
  found(peer, slots, std::move(pin));
  return {};
}

}  // namespace fccl::core
