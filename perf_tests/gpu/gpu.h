// Gpu: one GPU as a rank uses it, and the memory on it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "gpu/driver.h"
#include "memory.h"

namespace fccl::perf {

// The rank's thread makes, uses and destroys it, and has it as its current GPU from then on. It outlives the rank's
// communicator and memory.
class Gpu {
 public:
  // Opens it with a stream of its own, or with the default stream.
  static Result<std::unique_ptr<Gpu>> open(int ordinal, bool default_stream);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu();

  const GpuDriver& driver() const { return driver_; }
  void* stream() const { return stream_; }
  // True if all work on the stream is done.
  Result<bool> is_done() const;

 private:
  Gpu(const GpuDriver& driver, void* stream) : driver_(driver), stream_(stream) {}

  const GpuDriver& driver_;
  void* const stream_;  // null: the default stream
};

// Memory of a GPU, which the host reads and writes through a copy of its own.
class GpuMemory : public Memory {
 public:
  explicit GpuMemory(const Gpu& gpu) : driver_(gpu.driver()) {}
  ~GpuMemory() override;

  Result<std::byte*> allocate(std::size_t bytes) override;
  std::byte* draft(std::byte* at, std::size_t bytes) override;
  Result<void> put(std::byte* at, std::size_t bytes) override;
  Result<const std::byte*> look(const std::byte* at, std::size_t bytes) override;

 private:
  const GpuDriver& driver_;
  std::vector<GpuAddress> owned_;
  std::vector<std::byte> copy_;
};

}  // namespace fccl::perf
