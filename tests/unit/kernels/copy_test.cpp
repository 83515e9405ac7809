// Tests of copying past the caches.
#include "kernels/copy.h"

#include <gtest/gtest.h>

#include <vector>

namespace fccl::core {
namespace {

constexpr size_t kGuard = 128;
constexpr std::byte kPoison{0xa5};

std::byte pattern(size_t index) { return static_cast<std::byte>(index * 131 + index / 251); }

// A target of `bytes` bytes at a given distance from a cache line, between poisoned guards.
class Target {
 public:
  Target(size_t bytes, size_t misalignment) : bytes_(bytes), memory_(bytes + 2 * kGuard + 64, kPoison) {
    begin_ = memory_.data() + kGuard;
    begin_ += -reinterpret_cast<uintptr_t>(begin_) % 64 + misalignment - (misalignment > 0 ? 64 : 0);
  }
  std::byte* data() { return begin_; }
  // Returns true if it holds the pattern from `first` on and no byte beside it was touched.
  bool holds_pattern(size_t first) const {
    for (const std::byte* at = memory_.data(); at != memory_.data() + memory_.size(); ++at) {
      const bool inside = at >= begin_ && at < begin_ + bytes_;
      if (*at != (inside ? pattern(first + static_cast<size_t>(at - begin_)) : kPoison)) return false;
    }
    return true;
  }

 private:
  size_t bytes_;
  std::vector<std::byte> memory_;
  std::byte* begin_;
};

std::vector<std::byte> patterned(size_t bytes) {
  std::vector<std::byte> source(bytes);
  for (size_t i = 0; i < bytes; ++i) source[i] = pattern(i);
  return source;
}

const std::vector<size_t> kSizes = {0, 1, 3, 15, 16, 17, 63, 64, 65, 127, 128, 129, 191, 257, 1023, 4096, 4097, 100'000};
const std::vector<size_t> kMisalignments = {0, 1, 8, 31, 63};

TEST(StreamBytes, copies_every_byte_and_no_other_at_any_size_and_alignment) {
  const auto source = patterned(100'100);
  for (const size_t bytes : kSizes)
    for (const size_t misalignment : kMisalignments)
      for (const size_t first : {0, 5}) {
        Target target(bytes, misalignment);
        stream_bytes(target.data(), source.data() + first, bytes);
        EXPECT_TRUE(target.holds_pattern(first)) << bytes << " bytes, " << misalignment << " past a line, from " << first;
      }
}

TEST(StreamBytes, leaves_in_place_what_is_there) {
  auto source = patterned(5000);
  stream_bytes(source.data(), source.data(), 5000);
  EXPECT_EQ(source, patterned(5000));
}

TEST(StreamBytes, takes_null_pointers_with_zero_bytes) { stream_bytes(nullptr, nullptr, 0); }

}  // namespace
}  // namespace fccl::core
