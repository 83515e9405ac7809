// CudaMemory: memory of a GPU by CUDA's virtual memory functions, which other GPUs may read and other processes borrow.
#pragma once

#include <cuda.h>

#include <functional>
#include <memory>

#include "device/cuda_driver.h"
#include "device/device.h"

namespace fccl::core {

// Turns the result of a driver function into an error that says what was attempted.
using CheckResult = std::function<Result<void>(CUresult result, const char* attempt, const char* called)>;

// Made by a CudaDevice, which it keeps. What a step that failed has taken, the destructor gives back.
class CudaMemory final : public DeviceMemory {
 public:
  CudaMemory(std::shared_ptr<Device> device, const CudaDriver& driver, CUdevice number);
  ~CudaMemory() override;

  // The first step: makes memory of this GPU, or takes what a descriptor stands for.
  Result<void> make(size_t bytes, const CheckResult& check);
  Result<void> borrow(const Descriptor& lent, size_t bytes, const CheckResult& check);
  // Then any GPU of the process may be let, more than one.
  Result<void> let(CUdevice reader, const CheckResult& check) const;
  Result<Descriptor> lend(const CheckResult& check) const;

  std::byte* address() const override;

 private:
  CUmemAllocationProp kind() const;
  Result<void> round_up(size_t bytes, const CheckResult& check);
  Result<void> map(const CheckResult& check);

  std::shared_ptr<Device> device_;
  const CudaDriver& driver_;
  CUdevice number_;
  size_t bytes_ = 0;
  bool has_memory_ = false;
  CUmemGenericAllocationHandle memory_ = 0;
  CUdeviceptr address_ = 0;
  bool is_mapped_ = false;
};

}  // namespace fccl::core
