// PeerLanding: landing slots in the memory of GPUs, which those that reach each other read directly.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "device/landing.h"
#include "device/shared_memory.h"

namespace fccl::core {

// A rank's slots lie in the memory of its GPU. The peers of its process use the same mapping; other processes borrow the memory
// by a descriptor. It stays as long as any rank has it.
class PeerLanding final : public LandingSlots {
 public:
  static Result<std::unique_ptr<LandingSlots>> make(std::shared_ptr<Device> device, size_t bytes, int rank, int ranks);

  LandingPlace place() const override;
  Result<Descriptor> lend() const override;
  Result<void> reach(int peer, int pid, const LandingPlace& place, const Descriptor& lent) override;

 private:
  PeerLanding(std::shared_ptr<Device> device, size_t bytes, int rank, int ranks);
  void found(int rank, std::unique_ptr<SharedMemory> memory);

  std::shared_ptr<Device> device_;
  std::vector<std::unique_ptr<SharedMemory>> slots_;  // by rank
};

}  // namespace fccl::core
