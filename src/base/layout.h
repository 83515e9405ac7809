// Layout: where the blocks of a buffer lie.
#pragma once

#include <algorithm>
#include <cstddef>

namespace fccl {

// Offsets and lengths in bytes; block i is for rank i, or from it. Whoever moves blocks asks for both, block by block, so that
// no loop takes blocks for equal. A value without an owner.
class Layout {
 public:
  Layout() = default;
  // A buffer of one block: every index gives the whole buffer.
  static constexpr Layout of_one(size_t bytes) { return {0, bytes, bytes}; }
  // One behind the other, `each` bytes long until `total` is used up: the last ones are shorter, or empty.
  static constexpr Layout of_many(size_t each, size_t total) { return {each, each, total}; }

  constexpr size_t offset(int block) const { return std::min(static_cast<size_t>(block) * stride_, total_); }
  constexpr size_t bytes(int block) const { return std::min(most_, total_ - offset(block)); }
  // Of the longest block.
  constexpr size_t most() const { return most_; }
  // Of the buffer.
  constexpr size_t total() const { return total_; }

 private:
  constexpr Layout(size_t stride, size_t most, size_t total) : stride_(stride), most_(most), total_(total) {}

  size_t stride_ = 0;
  size_t most_ = 0;
  size_t total_ = 0;
};

}  // namespace fccl
