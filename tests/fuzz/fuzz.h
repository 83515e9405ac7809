// The two functions that every fuzzer defines, and nothing else: one file per parser of bytes from outside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"

// Gives any bytes to the parser. Aborts if it breaks a promise; a sanitizer aborts if it breaks memory.
// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name for it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace fccl::core::fuzz {

// Good inputs, from which the others are made.
std::vector<std::string> seeds();

// Takes an input apart from the front; zeros and "" once it is used up.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  uint8_t byte() {
    const std::string_view taken = text(1);
    return taken.empty() ? 0 : static_cast<uint8_t>(taken.front());
  }
  std::string_view text(size_t most) {
    const std::string_view taken = rest_.substr(0, most);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view rest() { return text(rest_.size()); }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace fccl::core::fuzz
