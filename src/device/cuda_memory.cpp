// Makes, maps, lends and borrows memory by the driver's functions.
#include "device/cuda_memory.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "base/rounding.h"

namespace fccl::core {
namespace {

constexpr auto kDescriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

}  // namespace

CudaMemory::CudaMemory(std::shared_ptr<Device> device, const CudaDriver& driver, CUdevice number)
    : device_(std::move(device)), driver_(driver), number_(number) {}

// A fork may not enter.
CudaMemory::~CudaMemory() {
  const Device::Use use(*device_);
  if (!use.entered()) return;
  if (is_mapped_) (void)driver_.memory_unmap(address_, bytes_);
  if (address_ != 0) (void)driver_.memory_free_address(address_, bytes_);
  if (has_memory_) (void)driver_.memory_release(memory_);
}

std::byte* CudaMemory::address() const { return std::bit_cast<std::byte*>(address_); }

CUmemAllocationProp CudaMemory::kind() const {
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  wanted.location.id = number_;
  wanted.requestedHandleTypes = kDescriptor;
  return wanted;
}

// The lender rounds alike, since GPUs of one host have one granularity.
Result<void> CudaMemory::round_up(size_t bytes, const CheckResult& check) {
  const CUmemAllocationProp wanted = kind();
  size_t granularity = 0;
  FCCL_TRY(check(driver_.memory_get_granularity(&granularity, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                 "ask for the granularity of memory", "cuMemGetAllocationGranularity"));
  bytes_ = rounded_up(bytes, granularity);
  return {};
}

Result<void> CudaMemory::make(size_t bytes, const CheckResult& check) {
  FCCL_TRY(round_up(bytes, check));
  const CUmemAllocationProp wanted = kind();
  FCCL_TRY(check(driver_.memory_create(&memory_, bytes_, &wanted, 0), fmt::format("make {} bytes of memory", bytes_).c_str(),
                 "cuMemCreate"));
  has_memory_ = true;
  return map(check);
}

Result<void> CudaMemory::borrow(const Descriptor& lent, size_t bytes, const CheckResult& check) {
  FCCL_TRY(round_up(bytes, check));
  // CUDA takes the number of the descriptor in the place of a pointer.
  void* const handle = std::bit_cast<void*>(static_cast<intptr_t>(lent.get()));
  FCCL_TRY(check(driver_.memory_import(&memory_, handle, kDescriptor), "borrow memory of another process",
                 "cuMemImportFromShareableHandle"));
  has_memory_ = true;
  return map(check);
}

Result<void> CudaMemory::map(const CheckResult& check) {
  FCCL_TRY(check(driver_.memory_reserve(&address_, bytes_, 0, 0, 0), "reserve addresses", "cuMemAddressReserve"));
  FCCL_TRY(check(driver_.memory_map(address_, bytes_, 0, memory_, 0), "map memory", "cuMemMap"));
  is_mapped_ = true;
  return let(number_, check);
}

// CUDA knows no access to a GPU's memory for reading alone.
Result<void> CudaMemory::let(CUdevice reader, const CheckResult& check) const {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = reader;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return check(driver_.memory_set_access(address_, bytes_, &access, 1), "reach memory", "cuMemSetAccess");
}

Result<Descriptor> CudaMemory::lend(const CheckResult& check) const {
  int lent = -1;
  FCCL_TRY(check(driver_.memory_export(&lent, memory_, kDescriptor, 0), "lend memory", "cuMemExportToShareableHandle"));
  return Descriptor(lent);
}

}  // namespace fccl::core
