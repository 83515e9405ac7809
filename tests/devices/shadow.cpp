// Shadow: copies to a buffer of its own, and from there later.
#include "devices/shadow.h"

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "devices/address_space.h"

namespace fccl::core::simulated {

namespace {

// Beyond it all lands, to keep memory small.
constexpr size_t kMostBytes = size_t{8} << 20;

thread_local Shadow* shadow_of_thread = nullptr;

size_t extent(const RealCopy& copy, size_t pitch) { return (copy.rows - 1) * pitch + copy.bytes; }

}  // namespace

void Shadow::become_of_thread() { shadow_of_thread = this; }

bool Shadow::touches(const std::byte* begin, size_t bytes) const {
  for (const Kept& kept : kept_)
    if (kept.copy.to < begin + bytes && begin < kept.copy.to + extent(kept.copy, kept.copy.to_pitch)) return true;
  return false;
}

void Shadow::copy(const RealCopy& copy) {
  const bool depends = touches(copy.from, extent(copy, copy.from_pitch)) || touches(copy.to, extent(copy, copy.to_pitch));
  if (depends || bytes_ + copy.bytes * copy.rows > kMostBytes) land();
  if (!copy.is_seen || !options_.keeps_back || copy.bytes * copy.rows > kMostBytes) return simulated::land(copy, dice_);
  Kept kept{std::vector<std::byte>(copy.bytes * copy.rows), copy};
  for (size_t row = 0; row < copy.rows; ++row)
    std::memcpy(kept.bytes.data() + row * copy.bytes, copy.from + row * copy.from_pitch, copy.bytes);
  kept.copy.from = kept.bytes.data();
  kept.copy.from_pitch = copy.bytes;
  poison(copy);
  bytes_ += kept.bytes.size();
  kept_.push_back(std::move(kept));
}

void Shadow::land() {
  if (kept_.empty()) return;
  if (options_.lands_late_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(options_.lands_late_us));
  for (size_t left = kept_.size(); left > 1; --left) std::swap(kept_[left - 1], kept_[dice_.up_to(left - 1)]);
  for (const Kept& kept : kept_) arrive(kept.copy, dice_);
  kept_.clear();
  bytes_ = 0;
}

void store(std::byte* to, std::span<const std::byte> bytes) {
  Region region;
  if (bytes.empty() || !find_region(to, region)) return;
  const bool is_seen = region.kind != Region::Kind::device;
  shadow_of_thread->copy({region.real + (to - region.begin), bytes.data(), bytes.size(), 1, 0, 0, is_seen});
}

}  // namespace fccl::core::simulated
