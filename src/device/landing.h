// LandingSlots: the slots of a lane by which the GPUs of a host's ranks give each other bytes: its own, and those of its peers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "arena/peer_arena.h"
#include "arena/reservation.h"
#include "base/result.h"
#include "device/device.h"
#include "device/shared_pin.h"
#include "os/forks.h"

namespace fccl::core {

// What a rank tells its peers: where they find its slots.
struct LandingPlace {
  ArenaName arena;
  uint64_t offset = kNotInArena;  // a rank without slots has none
};

// A rank's slots lie in its process's arena, where peers map them to read alone, and are pinned in every process that uses
// them. Slots are used in turn, by the numbers of a lane's steps. A DeviceLane owns it, and destroys it when its queue is idle:
// no GPU of this process writes there any more. A peer's GPU may still read, after a failure; it reads pages that stay. The
// process keeps the memory for its next landing of that size and never gives it back to the arena, since a peer that has pinned
// pages would go on reading those when others lie at the same address.
class LandingSlots {
 public:
  static constexpr uint64_t kSlots = 4;
  // The steps for which a GPU fills its slots before it empties those of the first one. Fewer than there are slots, so that no
  // GPU waits for the slowest of its peers in each step.
  static constexpr uint64_t kAhead = kSlots / 2;

  // `bytes`: of all slots, a multiple of kSlots pages. It is a set-up function of the device, as are reach and the destructor.
  static Result<std::unique_ptr<LandingSlots>> make(std::shared_ptr<Device> device, size_t bytes, int rank, int ranks);
  ~LandingSlots();
  LandingSlots(const LandingSlots&) = delete;
  LandingSlots& operator=(const LandingSlots&) = delete;

  LandingPlace place() const;
  // Maps and pins the slots of a peer. Does not trust the peer. Error: fcclSystemError, or the GPU's.
  Result<void> reach(int peer, int pid, const LandingPlace& place);

  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(slots_.size()); }
  size_t slot_bytes() const { return bytes_ / kSlots; }
  // Return a rank's slot of a step, as this process and as its GPU find it. A peer's may only be read.
  std::byte* slot(int rank, uint64_t step) const { return slots_[rank].begin + step % kSlots * slot_bytes(); }
  std::byte* device_slot(int rank, uint64_t step) const { return slots_[rank].pin->device_address(slot(rank, step)); }

 private:
  struct Slots {
    std::shared_ptr<const PeerArena> arena;  // null for this rank's own
    std::byte* begin = nullptr;
    std::unique_ptr<SharedPin> pin;
  };

  LandingSlots(std::shared_ptr<Device> device, size_t bytes, int rank, int ranks);

  std::shared_ptr<Device> device_;
  size_t bytes_;
  int rank_;
  unsigned forks_ = forks();
  std::vector<Slots> slots_;  // by rank
};

}  // namespace fccl::core
