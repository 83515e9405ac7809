// Counts the memory of a process's slots.
#include "device/landing.h"

#include <atomic>

#include "os/per_process.h"

namespace fccl::core {
namespace {

struct AllSlots {
  std::atomic<size_t> gather{0}, pair{0};

  std::atomic<size_t>& of(LandingSlots::Slots slots) { return slots == LandingSlots::Slots::pair ? pair : gather; }
};
constinit PerProcess<AllSlots> all_slots;

}  // namespace

LandingSlots::LandingSlots(size_t bytes, int rank, int ranks, Slots slots)
    : bytes_(bytes), kind_(slots), rank_(rank), rings_(slots == Slots::pair ? ranks : 1), begins_(static_cast<size_t>(ranks)) {
  all_slots.get().of(kind_).fetch_add(bytes_, std::memory_order_relaxed);
}

// A fork ends none of its parent's.
LandingSlots::~LandingSlots() { all_slots.get().of(kind_).fetch_sub(bytes_, std::memory_order_relaxed); }

LandingSlots::Bytes LandingSlots::of_process() {
  AllSlots& all = all_slots.get();
  return {all.gather.load(std::memory_order_relaxed), all.pair.load(std::memory_order_relaxed)};
}

}  // namespace fccl::core
