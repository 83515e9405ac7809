// Makes slots in this rank's GPU, and finds those of peers in theirs.
#include "landing/peer_landing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "os/per_process.h"
#include "os/random.h"

namespace fccl::core {

// Memory of a GPU as this process has it. Its mutex is held while it is mapped, which may take long. The last holder unmaps it.
struct MappedMemory {
  std::mutex mutex;
  std::vector<std::shared_ptr<Device>> readers;
  std::unique_ptr<DeviceMemory> memory;
};

namespace {

using MemoryId = decltype(LandingPlace::memory);

struct AllMappedMemory {
  std::mutex mutex;
  std::map<MemoryId, std::weak_ptr<MappedMemory>> of;
};
constinit PerProcess<AllMappedMemory> all_mapped_memory;

std::shared_ptr<MappedMemory> mapped_under(const MemoryId& id) {
  AllMappedMemory& all = all_mapped_memory.get();
  const std::scoped_lock lock(all.mutex);
  std::erase_if(all.of, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<MappedMemory>& known = all.of[id];
  std::shared_ptr<MappedMemory> mapped = known.lock();
  if (!mapped) known = mapped = std::make_shared<MappedMemory>();
  return mapped;
}

// `make` gives the first holder the memory; each one lets its own GPU use it.
template <class Make>
Result<std::shared_ptr<MappedMemory>> hold(const std::shared_ptr<Device>& device, const MemoryId& id, Access access,
                                           Make make) {
  std::shared_ptr<MappedMemory> mapped = mapped_under(id);
  const std::scoped_lock lock(mapped->mutex);
  if (!mapped->memory) {
    FCCL_TRY_ASSIGN(mapped->memory, make());
  } else if (std::ranges::find(mapped->readers, device) == mapped->readers.end()) {
    FCCL_TRY(device->share(*mapped->memory, access));
  }
  mapped->readers.push_back(device);
  return mapped;
}

}  // namespace

PeerLanding::PeerLanding(std::shared_ptr<Device> device, Slots slots, size_t bytes, int rank, int ranks)
    : LandingSlots(bytes, rank, ranks, slots),
      device_(std::move(device)),
      access_(slots == Slots::pair ? Access::write : Access::read),
      slots_(static_cast<size_t>(ranks)) {}

void PeerLanding::found(int rank, std::shared_ptr<MappedMemory> memory) {
  set_begin(rank, {nullptr, memory->memory->address()});
  slots_[static_cast<size_t>(rank)] = std::move(memory);
}

Result<std::unique_ptr<LandingSlots>> PeerLanding::make(std::shared_ptr<Device> device, Slots slots, size_t bytes, int rank,
                                                        int ranks) {
  std::unique_ptr<PeerLanding> landing(new PeerLanding(std::move(device), slots, bytes, rank, ranks));
  for (uint64_t& half : landing->place_.memory) {
    FCCL_TRY_ASSIGN(half, random_bits());
  }
  Device& own = *landing->device_;
  FCCL_TRY_ASSIGN(auto made,
                  hold(landing->device_, landing->place_.memory, landing->access_, [&] { return own.make_memory(bytes); }));
  landing->found(rank, std::move(made));
  return landing;
}

LandingPlace PeerLanding::place() const { return place_; }

Result<Descriptor> PeerLanding::lend() const { return device_->lend(*slots_[static_cast<size_t>(rank())]->memory); }

Result<void> PeerLanding::reach(int peer, int pid, const LandingPlace& place, const Descriptor& lent) {
  const auto borrow = [&]() -> Result<std::unique_ptr<DeviceMemory>> {
    if (!lent) return fail(fcclSystemError, fmt::format("the process with pid {} has lent no memory of its GPU", pid));
    return device_->borrow(lent, bytes(), access_);
  };
  FCCL_TRY_ASSIGN(auto memory, hold(device_, place.memory, access_, borrow));
  found(peer, std::move(memory));
  return {};
}

}  // namespace fccl::core
