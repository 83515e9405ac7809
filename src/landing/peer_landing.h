// PeerLanding: landing slots in the memory of GPUs, which those that reach each other read and write directly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "device/landing.h"

namespace fccl::core {

struct MappedMemory;

// A rank's slots lie in the memory of its GPU. Other processes borrow it by a descriptor. A process maps it once: ranks that
// are threads read each other's slots by the mapping of the rank that made them, and share what one of them has borrowed. The
// memory stays as long as any rank has it. In a set-up function a thread waits only for another one that does the same with the
// same slots.
class PeerLanding final : public LandingSlots {
 public:
  static Result<std::unique_ptr<LandingSlots>> make(std::shared_ptr<Device> device, Slots slots, size_t bytes, int rank,
                                                    int ranks);

  LandingPlace place() const override;
  Result<Descriptor> lend() const override;
  Result<void> reach(int peer, int pid, const LandingPlace& place, const Descriptor& lent) override;

 private:
  PeerLanding(std::shared_ptr<Device> device, Slots slots, size_t bytes, int rank, int ranks);
  void found(int rank, std::shared_ptr<MappedMemory> memory);

  std::shared_ptr<Device> device_;
  Access access_;  // of the peers' GPUs
  LandingPlace place_{.is_made = true};
  std::vector<std::shared_ptr<MappedMemory>> slots_;  // by rank
};

}  // namespace fccl::core
