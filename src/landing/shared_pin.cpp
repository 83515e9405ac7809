// Keeps the pinned ranges of the process by their addresses, and counts their holders.
#include "landing/shared_pin.h"

#include <map>
#include <mutex>
#include <utility>

#include "os/per_process.h"

namespace fccl::core {

// Its mutex is held while it is pinned and unpinned, which may take long.
struct PinnedRange {
  std::mutex mutex;
  size_t holders = 0;
  std::shared_ptr<Device> device;  // the one that pinned it; the memory is pinned for all
  std::unique_ptr<PinnedMemory> memory;
};

namespace {

struct PinnedRanges {
  std::mutex mutex;
  std::map<const std::byte*, std::weak_ptr<PinnedRange>> of;
};
constinit PerProcess<PinnedRanges> pinned_ranges;

std::shared_ptr<PinnedRange> range_at(const std::byte* begin) {
  PinnedRanges& all = pinned_ranges.get();
  const std::scoped_lock lock(all.mutex);
  std::erase_if(all.of, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<PinnedRange>& known = all.of[begin];
  std::shared_ptr<PinnedRange> range = known.lock();
  if (!range) known = range = std::make_shared<PinnedRange>();
  return range;
}

// Calls `pin` for the first holder.
template <class Pin>
Result<std::shared_ptr<PinnedRange>> hold(const std::shared_ptr<Device>& device, const std::byte* begin, Pin pin) {
  std::shared_ptr<PinnedRange> range = range_at(begin);
  const std::scoped_lock lock(range->mutex);
  if (range->holders == 0) {
    FCCL_TRY_ASSIGN(auto pinned, pin());
    range->memory = std::move(pinned);
    range->device = device;
  }
  ++range->holders;
  return range;
}

}  // namespace

SharedPin::SharedPin(std::shared_ptr<PinnedRange> range) : range_(std::move(range)) {}

SharedPin::~SharedPin() {
  const std::scoped_lock lock(range_->mutex);
  if (--range_->holders == 0) range_->memory.reset();
}

Result<std::unique_ptr<SharedPin>> SharedPin::of_own(const std::shared_ptr<Device>& device, std::span<std::byte> memory) {
  FCCL_TRY_ASSIGN(auto range, hold(device, memory.data(), [&] { return device->pin(memory); }));
  return std::unique_ptr<SharedPin>(new SharedPin(std::move(range)));
}

Result<std::unique_ptr<SharedPin>> SharedPin::of_peer(const std::shared_ptr<Device>& device,
                                                      std::span<const std::byte> memory) {
  FCCL_TRY_ASSIGN(auto range, hold(device, memory.data(), [&] { return device->pin_read_only(memory); }));
  return std::unique_ptr<SharedPin>(new SharedPin(std::move(range)));
}

std::byte* SharedPin::device_address(const void* host) const { return range_->memory->device_address(host); }

}  // namespace fccl::core
