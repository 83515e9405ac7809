// CudaDevice: a GPU, used through CUDA's driver.
#pragma once

#include <cuda.h>

#include <memory>
#include <span>

#include "device/cuda_driver.h"
#include "device/cuda_kernels.h"
#include "device/cuda_memory.h"
#include "device/device.h"
#include "os/forks.h"

namespace fccl::core {

// Uses the GPU's primary context, which torch and CUDA's runtime share. The device and the context live as long as the process,
// because releasing them would race with other threads that still free their own objects. Every call of a forked child is
// refused before it reaches the driver.
class CudaDevice : public Device, public std::enable_shared_from_this<CudaDevice> {
 public:
  static Result<std::shared_ptr<CudaDevice>> open(const CudaDriver& driver, int ordinal);

  const DeviceLimits& limits() const override { return limits_; }
  Result<std::unique_ptr<PinnedMemory>> pin(std::span<std::byte> memory) override;
  Result<std::unique_ptr<PinnedMemory>> pin_read_only(std::span<const std::byte> memory) override;
  Result<std::unique_ptr<DeviceMemory>> make_memory(size_t bytes) override;
  Result<Descriptor> lend(const DeviceMemory& memory) override;
  Result<std::unique_ptr<DeviceMemory>> borrow(const Descriptor& lent, size_t bytes, Access access) override;
  Result<void> share(const DeviceMemory& memory, Access access) override;
  Result<void> load(size_t sources) override;
  Result<Queue> make_queue() override;
  Result<Mark> make_mark() override;
  void drop(Queue queue) override;
  void drop(Mark mark) override;
  bool may_reach(const std::string& bus_id) const override;
  MemoryPlace place_of(const void* pointer) const override;
  Result<bool> owns(Queue queue) const override;
  Result<bool> is_capturing(Queue queue) const override;
  Result<bool> is_idle(Queue queue) const override;
  Result<void> copy(Queue queue, const Copy& copy) override;
  Result<void> reduce(Queue queue, const Reduction& reduction) override;
  Result<void> words(Queue queue, std::span<const WordOperation> operations) override;
  Result<void> record(Queue queue, Mark mark) override;
  Result<void> await(Queue queue, Mark mark) override;

  // Unpins memory that `pin` returned, on any thread, with or without a Use.
  void unpin(void* memory);

 private:
  CudaDevice(const CudaDriver& driver, CUdevice device) : driver_(driver), device_(device) {}
  Result<void> enter() override;
  void leave() override;
  Result<void> find_limits(int ordinal);
  Result<std::unique_ptr<PinnedMemory>> pin(std::span<std::byte> memory, unsigned flags);
  // Turns the result of a driver function into an error that says what was attempted; CUDA_SUCCESS is not an error.
  Result<void> check(CUresult result, const char* attempt, const char* called) const;
  CheckResult checker() const;
  bool is_of_parent() const { return forks() != forks_; }

  const CudaDriver& driver_;
  const CUdevice device_;
  const unsigned forks_ = forks();
  CUcontext context_ = nullptr;
  DeviceLimits limits_;
  CudaKernels kernels_;
};

}  // namespace fccl::core
