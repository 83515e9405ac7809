// LentMemory: memory of a simulated GPU that others may be let use, and that other processes borrow by its memfd.
#pragma once

#include <cstddef>
#include <memory>

#include "device/device.h"
#include "devices/gpu.h"
#include "os/descriptor.h"

namespace fccl::core::simulated {

// Set-up functions of the GPU. The memory outlives the process that made it, wherever it is mapped. The code that made or
// borrowed it owns it, and destroys it before its GPU.
class LentMemory final : public DeviceMemory {
 public:
  static Answer<std::unique_ptr<LentMemory>> make(Gpu& gpu, size_t bytes);
  // Takes a copy of the descriptor.
  static Answer<std::unique_ptr<LentMemory>> borrow(Gpu& gpu, int lent, size_t bytes, Access access);
  ~LentMemory() override;

  std::byte* address() const override { return region_.begin; }
  Answer<Descriptor> lend(Gpu& gpu) const;
  // Lets another GPU use it.
  Answer<void> share_with(Gpu& user, Access access) const;

 private:
  LentMemory(Descriptor file, const Region& region) : file_(std::move(file)), region_(region) {}
  static Answer<std::unique_ptr<LentMemory>> map(Gpu& gpu, Descriptor file, size_t bytes, bool read_only);

  Descriptor file_;
  Region region_;
};

}  // namespace fccl::core::simulated
