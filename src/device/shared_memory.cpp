// Keeps the mapped memory of GPUs of the process by its id.
#include "device/shared_memory.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "os/per_process.h"
#include "os/random.h"

namespace fccl::core {

// Its mutex is held while it is mapped and unmapped, which may take long.
struct MappedMemory {
  std::mutex mutex;
  size_t holders = 0;
  std::unique_ptr<DeviceMemory> memory;
  std::vector<std::shared_ptr<Device>> readers;
};

namespace {

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

// `make` gives the first holder the memory.
template <class Make>
Result<std::shared_ptr<MappedMemory>> hold(const std::shared_ptr<Device>& device, const MemoryId& id, Make make) {
  std::shared_ptr<MappedMemory> mapped = mapped_under(id);
  const std::scoped_lock lock(mapped->mutex);
  if (!mapped->memory) {
    FCCL_TRY_ASSIGN(mapped->memory, make());
  } else if (std::ranges::find(mapped->readers, device) == mapped->readers.end()) {
    FCCL_TRY(device->share(*mapped->memory));
  }
  mapped->readers.push_back(device);
  ++mapped->holders;
  return mapped;
}

}  // namespace

SharedMemory::SharedMemory(const MemoryId& id, std::shared_ptr<MappedMemory> mapped) : id_(id), mapped_(std::move(mapped)) {}

SharedMemory::~SharedMemory() {
  const std::scoped_lock lock(mapped_->mutex);
  if (--mapped_->holders > 0) return;
  mapped_->memory.reset();
  mapped_->readers.clear();
}

Result<std::unique_ptr<SharedMemory>> SharedMemory::make(const std::shared_ptr<Device>& device, size_t bytes) {
  MemoryId id{};
  for (uint64_t& half : id) {
    FCCL_TRY_ASSIGN(half, random_bits());
  }
  FCCL_TRY_ASSIGN(auto mapped, hold(device, id, [&] { return device->make_memory(bytes); }));
  return std::unique_ptr<SharedMemory>(new SharedMemory(id, std::move(mapped)));
}

Result<std::unique_ptr<SharedMemory>> SharedMemory::find(const std::shared_ptr<Device>& device, const MemoryId& id,
                                                         const Descriptor& lent, size_t bytes) {
  const auto borrow = [&]() -> Result<std::unique_ptr<DeviceMemory>> {
    if (!lent) return fail(fcclSystemError, "a rank of this process has let go the memory of its GPU that it lends");
    return device->borrow(lent, bytes);
  };
  FCCL_TRY_ASSIGN(auto mapped, hold(device, id, borrow));
  return std::unique_ptr<SharedMemory>(new SharedMemory(id, std::move(mapped)));
}

const DeviceMemory& SharedMemory::memory() const { return *mapped_->memory; }

}  // namespace fccl::core
