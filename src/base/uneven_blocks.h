// UnevenBlocks: where the blocks of one rank's buffers lie in a collective whose blocks have counts of their own.
#pragma once

#include <span>
#include <vector>

#include "base/layout.h"

namespace fccl::core {

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
