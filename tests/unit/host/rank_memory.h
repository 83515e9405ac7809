// RankMemory: a buffer of one rank of a test, in the arena or not.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "arena/arena.h"

namespace fccl::core {

// Owned by a test. It begins as bytes that no test expects.
class RankMemory {
 public:
  RankMemory(size_t bytes, bool in_arena) : size_(bytes), in_arena_(in_arena) {
    if (in_arena)
      memory_ = static_cast<std::byte*>(*process_arena().allocate(bytes));
    else
      memory_ = new std::byte[bytes];
    std::memset(memory_, 0xa5, bytes);
  }
  RankMemory(RankMemory&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), size_(other.size_), in_arena_(other.in_arena_) {}
  RankMemory(const RankMemory&) = delete;
  RankMemory& operator=(const RankMemory&) = delete;
  RankMemory& operator=(RankMemory&&) = delete;
  ~RankMemory() {
    if (in_arena_)
      EXPECT_TRUE(process_arena().free(memory_));
    else
      delete[] memory_;
  }
  std::byte* data() const { return memory_; }
  uint32_t& word(size_t index) const { return reinterpret_cast<uint32_t*>(memory_)[index]; }

 private:
  std::byte* memory_ = nullptr;
  size_t size_;
  bool in_arena_;
};

}  // namespace fccl::core
