// AddressSpace: a map under a lock. Compiled without the thread sanitizer.
#include "devices/address_space.h"

#include <map>
#include <mutex>

#include "devices/unseen.h"

namespace fccl::core::simulated {

namespace {

// A type of its own, so that no other source has the same instances of the map, compiled with the sanitizer.
struct Place {
  uintptr_t address;
  bool operator<(const Place& other) const { return address < other.address; }
};

struct Space {
  UnseenLock lock;
  std::map<Place, Region> regions;
};

// Never destroyed, since queues may outlive main.
Space& space() {
  static auto* const made = new Space;
  return *made;
}

Place place(const void* address) { return {reinterpret_cast<uintptr_t>(address)}; }

std::map<Place, Region>::iterator at(std::map<Place, Region>& regions, const void* address) {
  auto after = regions.upper_bound(place(address));
  if (after == regions.begin()) return regions.end();
  --after;
  return place(address).address < after->first.address + after->second.bytes ? after : regions.end();
}

}  // namespace

bool add_region(const Region& region) {
  Space& all = space();
  const std::lock_guard hold(all.lock);
  const auto after = all.regions.upper_bound(place(region.begin));
  if (after != all.regions.end() && after->first.address < place(region.begin).address + region.bytes) return false;
  if (at(all.regions, region.begin) != all.regions.end()) return false;
  all.regions.emplace(place(region.begin), region);
  return true;
}

bool remove_region(const void* begin) {
  Space& all = space();
  const std::lock_guard hold(all.lock);
  return all.regions.erase(place(begin)) != 0;
}

void let_use(const void* begin, int ordinal, bool writes) {
  Space& all = space();
  const std::lock_guard hold(all.lock);
  const auto region = at(all.regions, begin);
  if (region == all.regions.end()) return;
  region->second.readers |= uint64_t{1} << ordinal;
  if (writes) region->second.writers |= uint64_t{1} << ordinal;
}

bool find_region(const void* address, Region& found) {
  Space& all = space();
  const std::lock_guard hold(all.lock);
  const auto region = at(all.regions, address);
  if (region == all.regions.end()) return false;
  found = region->second;
  return true;
}

bool find_region_of(const Gpu* gpu, Region& found) {
  Space& all = space();
  const std::lock_guard hold(all.lock);
  for (const auto& [begin, region] : all.regions) {
    if (region.gpu != gpu) continue;
    found = region;
    return true;
  }
  return false;
}

}  // namespace fccl::core::simulated
