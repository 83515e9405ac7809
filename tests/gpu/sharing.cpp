// Exports and imports device memory.
#include "sharing.h"

#include <unistd.h>

#include <bit>
#include <cstring>

#include "team.h"

namespace fccl::gpu {

namespace {

CUmemAllocationProp exportable() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  return properties;
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

PhysicalMemory PhysicalMemory::make(size_t bytes) {
  if (attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) == 0) {
    throw Unsupported("exporting cuMem memory as a descriptor (says the device's attribute)");
  }
  const CUmemAllocationProp properties = exportable();
  size_t granularity = 0;
  GPU_CHECK(driver().granularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  const size_t size = (bytes + granularity - 1) / granularity * granularity;
  CUmemGenericAllocationHandle handle = 0;
  GPU_CHECK(driver().mem_create(&handle, size, &properties, 0));
  return {handle, size};
}

PhysicalMemory PhysicalMemory::import(int descriptor, size_t bytes) {
  CUmemGenericAllocationHandle handle = 0;
  // The function takes a descriptor in the place of a pointer.
  void* const given = std::bit_cast<void*>(static_cast<intptr_t>(descriptor));
  GPU_CHECK(driver().import_handle(&handle, given, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  return {handle, bytes};
}

PhysicalMemory::PhysicalMemory(CUmemGenericAllocationHandle handle, size_t size) : handle_(handle), size_(size) {
  GPU_CHECK(driver().address_reserve(&address_, size, 0, 0, 0));
  GPU_CHECK(driver().mem_map(address_, size, 0, handle, 0));
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  GPU_CHECK(driver().set_access(address_, size, &access, 1));
}

PhysicalMemory::PhysicalMemory(PhysicalMemory&& other) noexcept
    : handle_(std::exchange(other.handle_, 0)), size_(other.size_), address_(std::exchange(other.address_, 0)) {}

PhysicalMemory::~PhysicalMemory() {
  if (address_ == 0 || std::uncaught_exceptions() != 0) return;
  driver().mem_unmap(address_, size_);
  driver().address_free(address_, size_);
  driver().mem_release(handle_);
}

Descriptor PhysicalMemory::descriptor() const {
  int number = -1;
  GPU_CHECK(driver().export_handle(&number, handle_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  return Descriptor(number);
}

IpcHandle export_by_ipc(const DeviceMemory& memory) {
  cudaIpcMemHandle_t handle{};
  GPU_CHECK(cudaIpcGetMemHandle(&handle, memory.get()));
  IpcHandle exported{};
  std::memcpy(exported.data(), &handle, sizeof(handle));
  return exported;
}

IpcMapping::IpcMapping(const IpcHandle& handle) {
  cudaIpcMemHandle_t given{};
  std::memcpy(&given, handle.data(), sizeof(given));
  void* mapped = nullptr;
  GPU_CHECK(cudaIpcOpenMemHandle(&mapped, given, cudaIpcMemLazyEnablePeerAccess));
  mapped_ = Owned<void*, cudaIpcCloseMemHandle>(mapped);
}

}  // namespace fccl::gpu
