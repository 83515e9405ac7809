// Device memory that other processes map: by handles of cudaIpc, and by descriptors of cuMem allocations.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "device.h"

namespace fccl::gpu {

// A descriptor that is closed with it.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();
  int get() const { return number_; }

 private:
  int number_;
};

// Memory of cuMemCreate, mapped into this process: made here for export, or made elsewhere and imported.
class PhysicalMemory {
 public:
  // Rounded up to what the GPU can map.
  static PhysicalMemory make(size_t bytes);
  // `bytes` as the maker's size() said.
  static PhysicalMemory import(int descriptor, size_t bytes);
  PhysicalMemory(PhysicalMemory&& other) noexcept;
  PhysicalMemory& operator=(PhysicalMemory&&) = delete;
  ~PhysicalMemory();

  void* get() const { return pointer_to(address_); }
  size_t size() const { return size_; }
  Descriptor descriptor() const;

 private:
  PhysicalMemory(CUmemGenericAllocationHandle handle, size_t size);

  CUmemGenericAllocationHandle handle_;
  size_t size_;
  CUdeviceptr address_ = 0;
};

using IpcHandle = std::array<std::byte, sizeof(cudaIpcMemHandle_t)>;

// Exports memory of cudaMalloc.
IpcHandle export_by_ipc(const DeviceMemory& memory);

// Another process's allocation of cudaMalloc.
class IpcMapping {
 public:
  explicit IpcMapping(const IpcHandle& handle);
  void* get() const { return mapped_.get(); }

 private:
  Owned<void*, cudaIpcCloseMemHandle> mapped_;
};

}  // namespace fccl::gpu
