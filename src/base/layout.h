// Layout: where the blocks of a buffer lie.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace fccl::core {

// The position of one block in a buffer of uneven blocks, in bytes.
struct ByteRange {
  size_t offset = 0;
  size_t bytes = 0;
};

// Gives the offset and the length of each block in bytes; block i goes to rank i, or comes from it. Code that moves blocks asks
// for both per block, so that no loop assumes equal blocks. A value that refers to the ranges of uneven blocks; their owner
// must outlive it.
class Layout {
 public:
  Layout() = default;
  // A buffer of one block: every index gives the whole buffer.
  static constexpr Layout of_one(size_t bytes) { return {0, bytes, bytes}; }
  // Blocks of `each` bytes, one after the other, until `total` is used up. The last ones may be shorter or empty.
  static constexpr Layout of_many(size_t each, size_t total) { return {each, each, total}; }

  // Each block has a range of its own, in any order, perhaps with gaps.
  static constexpr Layout of_ranges(std::span<const ByteRange> ranges) {
    Layout layout;
    layout.ranges_ = ranges.data();
    for (const ByteRange& range : ranges) {
      layout.most_ = std::max(layout.most_, range.bytes);
      layout.total_ += range.bytes;
    }
    return layout;
  }

  constexpr size_t offset(int block) const {
    return ranges_ != nullptr ? ranges_[block].offset : std::min(static_cast<size_t>(block) * stride_, total_);
  }
  constexpr size_t bytes(int block) const {
    return ranges_ != nullptr ? ranges_[block].bytes : std::min(most_, total_ - offset(block));
  }
  // Bytes of the longest block.
  constexpr size_t most() const { return most_; }
  // Bytes of all blocks together.
  constexpr size_t total() const { return total_; }

 private:
  constexpr Layout(size_t stride, size_t most, size_t total) : stride_(stride), most_(most), total_(total) {}

  const ByteRange* ranges_ = nullptr;
  size_t stride_ = 0;
  size_t most_ = 0;
  size_t total_ = 0;
};

// The layout of one buffer together with the ranges that it refers to. Copies are independent. Setting it again allocates only
// if there are more ranges than ever before.
class UnevenBuffer {
 public:
  UnevenBuffer() = default;
  UnevenBuffer(const UnevenBuffer& other) { *this = other; }
  UnevenBuffer& operator=(const UnevenBuffer& other) {
    ranges_ = other.ranges_;
    layout_ = ranges_.empty() ? other.layout_ : Layout::of_ranges(ranges_);
    return *this;
  }
  ~UnevenBuffer() = default;

  // Makes it a buffer of one block.
  void set(size_t bytes) {
    ranges_.clear();
    layout_ = Layout::of_one(bytes);
  }
  // Makes it a buffer of one block per rank.
  void set(std::span<const ByteRange> ranges) {
    ranges_.assign(ranges.begin(), ranges.end());
    layout_ = Layout::of_ranges(ranges_);
  }
  const Layout& layout() const { return layout_; }

 private:
  std::vector<ByteRange> ranges_;
  Layout layout_;
};

// The layouts of one rank's buffers in one call. The issuer keeps them until the call has ended.
struct UnevenBlocks {
  UnevenBuffer input, output;
};

}  // namespace fccl::core
