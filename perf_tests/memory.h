// Memory: where one rank's buffers lie, and how the host comes at what is in them.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "fccl/memory.hpp"

namespace fccl::perf {

// Owns what it allocates until it is destroyed. Made, used and destroyed by one rank's thread, while no call uses the memory.
class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  virtual ~Memory() = default;

  virtual Result<std::byte*> allocate(std::size_t bytes) = 0;
  // Where the host may write what `put` then brings to `at`; good until the next function is called.
  virtual std::byte* draft(std::byte* at, std::size_t bytes) = 0;
  virtual Result<void> put(std::byte* at, std::size_t bytes) = 0;
  // What lies at `at`, for the host to read; good until the next function is called.
  virtual Result<const std::byte*> look(const std::byte* at, std::size_t bytes) = 0;
};

// Memory that the host reads and writes as it is: nothing is copied.
class HostMemory : public Memory {
 public:
  Result<std::byte*> allocate(std::size_t bytes) override { return owned_.emplace_back(bytes).data(); }
  std::byte* draft(std::byte* at, std::size_t) override { return at; }
  Result<void> put(std::byte*, std::size_t) override { return {}; }
  Result<const std::byte*> look(const std::byte* at, std::size_t) override { return at; }

 private:
  std::vector<std::vector<std::byte>> owned_;
};

// The same, of memory that the ranks of a host map.
class ArenaMemory : public HostMemory {
 public:
  Result<std::byte*> allocate(std::size_t bytes) override {
    auto made = ArenaArray<std::byte>::make(bytes);
    if (!made) return made.error();
    return owned_.emplace_back(*std::move(made)).data();
  }

 private:
  std::vector<ArenaArray<std::byte>> owned_;
};

}  // namespace fccl::perf
