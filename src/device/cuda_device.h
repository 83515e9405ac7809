// CudaDevice: a GPU by CUDA's driver.
#pragma once

#include <cuda.h>

#include <memory>
#include <span>

#include "device/cuda_driver.h"
#include "device/device.h"
#include "system/forks.h"

namespace fccl {

// In the GPU's primary context, which torch and CUDA's runtime use, too. It lives as long as the process, and with it the
// context: to release it while others free what they made there would be a race that nobody can win. A fork may call, and is
// refused: nothing of its parent's reaches the driver.
class CudaDevice : public Device, public std::enable_shared_from_this<CudaDevice> {
 public:
  static Result<std::shared_ptr<CudaDevice>> open(const CudaDriver& driver, int ordinal);

  const DeviceLimits& limits() const override { return limits_; }
  Result<std::unique_ptr<PinnedMemory>> pin(std::span<std::byte> memory) override;
  Result<Queue> make_queue() override;
  Result<Mark> make_mark() override;
  void drop(Queue queue) override;
  void drop(Mark mark) override;
  MemoryPlace place_of(const void* pointer) const override;
  Result<bool> owns(Queue queue) const override;
  Result<bool> is_capturing(Queue queue) const override;
  Result<bool> is_idle(Queue queue) const override;
  Result<void> copy(Queue queue, const Copy& copy) override;
  Result<void> words(Queue queue, std::span<const WordOperation> operations) override;
  Result<void> record(Queue queue, Mark mark) override;
  Result<void> await(Queue queue, Mark mark) override;

  // For what the memory of `pin` does at its end, on a thread that may have no Use.
  void unpin(void* memory);

 private:
  CudaDevice(const CudaDriver& driver, CUdevice device) : driver_(driver), device_(device) {}
  Result<void> enter() override;
  void leave() override;
  Result<void> find_limits(int ordinal);
  // An error of what was called to `attempt`; none for CUDA_SUCCESS.
  Result<void> check(CUresult result, const char* attempt, const char* called) const;
  bool is_of_parent() const { return forks() != forks_; }

  const CudaDriver& driver_;
  const CUdevice device_;
  const unsigned forks_ = forks();
  CUcontext context_ = nullptr;
  DeviceLimits limits_;
};

}  // namespace fccl
