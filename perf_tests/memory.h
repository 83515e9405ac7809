// Memory: the place of one rank's buffers, and how the host reaches their contents.
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
  // Returns memory where the host may write the bytes that `put` then copies to `at`; valid until the next function is called.
  virtual std::byte* draft(std::byte* at, std::size_t bytes) = 0;
  virtual Result<void> put(std::byte* at, std::size_t bytes) = 0;
  // Returns the contents of `at` for the host to read; valid until the next function is called.
  virtual Result<const std::byte*> look(const std::byte* at, std::size_t bytes) = 0;
};

// Memory that the host reads and writes directly: nothing is copied.
class HostMemory : public Memory {
 public:
  Result<std::byte*> allocate(std::size_t bytes) override { return owned_.emplace_back(bytes).data(); }
  std::byte* draft(std::byte* at, std::size_t) override { return at; }
  Result<void> put(std::byte*, std::size_t) override { return {}; }
  Result<const std::byte*> look(const std::byte* at, std::size_t) override { return at; }

 private:
  std::vector<std::vector<std::byte>> owned_;
};

// Host memory that the ranks of a host map.
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
