// Takes slots from the arena or from those that the process has kept, and pins them and those of peers.
#include "device/landing.h"

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

LandingSlots::LandingSlots(std::shared_ptr<Device> device, size_t bytes, int rank, int ranks)
    : device_(std::move(device)), bytes_(bytes), rank_(rank), slots_(static_cast<size_t>(ranks)) {}

Result<std::unique_ptr<LandingSlots>> LandingSlots::make(std::shared_ptr<Device> device, size_t bytes, int rank, int ranks) {
  std::unique_ptr<LandingSlots> landing(new LandingSlots(std::move(device), bytes, rank, ranks));
  Slots& own = landing->slots_[static_cast<size_t>(rank)];
  FCCL_TRY_ASSIGN(own.begin, take_slots(bytes));
  FCCL_TRY_ASSIGN(own.pin, SharedPin::of_own(landing->device_, {own.begin, bytes}));
  return landing;
}

// A fork has neither the arena nor the GPU.
LandingSlots::~LandingSlots() {
  std::byte* const own = slots_[static_cast<size_t>(rank_)].begin;
  slots_.clear();
  if (own != nullptr && forks_ == forks()) keep_slots(bytes_, own);
}

LandingPlace LandingSlots::place() const {
  return {name_of(*own_reservation()), offset_in_arena(slots_[static_cast<size_t>(rank_)].begin, bytes_)};
}

Result<void> LandingSlots::reach(int peer, int pid, const LandingPlace& place) {
  Slots& slots = slots_[static_cast<size_t>(peer)];
  FCCL_TRY_ASSIGN(slots.arena, PeerArena::map(pid, place.arena));
  const std::byte* const begin = slots.arena->at(place.offset, bytes_);
  if (begin == nullptr || place.offset % kPageBytes != 0)
    return fail(fcclSystemError, fmt::format("the slots of the process with pid {} lie outside of its arena", pid));
  slots.begin = const_cast<std::byte*>(begin);
  const Reservation* const own = own_reservation();
  if (own != nullptr && own->holds(begin)) {
    FCCL_TRY_ASSIGN(slots.pin, SharedPin::of_own(device_, {slots.begin, bytes_}));
    return {};
  }
  if (!device_->limits().pins_read_only)
    return fail(fcclSystemError, fmt::format("{} pins no memory for reading alone", device_->limits().name));
  FCCL_TRY_ASSIGN(slots.pin, SharedPin::of_peer(device_, {begin, bytes_}));
  return {};
}

}  // namespace fccl::core
