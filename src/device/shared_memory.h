// SharedMemory: memory of a GPU that a process maps once for all its ranks that use it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "device/device.h"
#include "os/descriptor.h"

namespace fccl::core {

// A random number, equal in all processes that have the memory.
using MemoryId = std::array<uint64_t, 2>;

struct MappedMemory;

// Ranks of one process read a peer's memory by one mapping, and each other's by that of the rank that made it. So the first
// holder makes or borrows it, each one lets its own GPU read it, and the last one unmaps it. Making and destroying one are
// set-up functions of the device; in both a thread waits only for another one that does the same with this memory.
class SharedMemory {
 public:
  // Makes memory under a new id.
  static Result<std::unique_ptr<SharedMemory>> make(const std::shared_ptr<Device>& device, size_t bytes);
  // Finds memory by its id, or borrows it from another process. `lent`: no descriptor if a rank of this process made it.
  static Result<std::unique_ptr<SharedMemory>> find(const std::shared_ptr<Device>& device, const MemoryId& id,
                                                    const Descriptor& lent, size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  const MemoryId& id() const { return id_; }
  const DeviceMemory& memory() const;

 private:
  SharedMemory(const MemoryId& id, std::shared_ptr<MappedMemory> mapped);

  MemoryId id_;
  std::shared_ptr<MappedMemory> mapped_;
};

}  // namespace fccl::core
