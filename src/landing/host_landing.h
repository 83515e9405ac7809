// HostLanding: landing slots in host memory, which GPUs that cannot reach each other read over PCIe.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "arena/peer_arena.h"
#include "base/result.h"
#include "device/device.h"
#include "device/landing.h"
#include "landing/shared_pin.h"
#include "os/forks.h"

namespace fccl::core {

// A rank's slots lie in its process's arena, where peers map them to read alone, and are pinned in every process that uses
// them. The process keeps the memory for its next landing of that size and never gives it back to the arena, since a peer that
// has pinned pages would go on reading those when others lie at the same address.
class HostLanding final : public LandingSlots {
 public:
  static Result<std::unique_ptr<LandingSlots>> make(std::shared_ptr<Device> device, size_t bytes, int rank, int ranks);
  ~HostLanding() override;

  LandingPlace place() const override;
  // Peers lend nothing.
  Result<void> reach(int peer, int pid, const LandingPlace& place, const Descriptor& lent) override;

 private:
  struct Slots {
    std::shared_ptr<const PeerArena> arena;  // null for this rank's own
    std::unique_ptr<SharedPin> pin;
  };

  HostLanding(std::shared_ptr<Device> device, size_t bytes, int rank, int ranks);
  void found(int rank, std::byte* begin, std::unique_ptr<SharedPin> pin);

  std::shared_ptr<Device> device_;
  std::byte* own_ = nullptr;
  unsigned forks_ = forks();
  std::vector<Slots> slots_;  // by rank
};

}  // namespace fccl::core
