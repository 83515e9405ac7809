// ToldLine: what a rank of another host has told of the line of waits that begins with it.
#pragma once

#include <cstdint>

namespace fccl::core {

// Says what is known of the last rank of a line of waits: nothing but that others wait for it; that it waits for nobody, and
// which call was its last; that it does not answer; or that ranks of the line wait for each other in a circle.
enum class LineState : uint8_t { open, late, silent, circle };

// The rank at the end of a line of waits.
struct LineEnd {
  int rank = -1;
  LineState state = LineState::open;
};

// A line's end, and when this host heard of it.
struct ToldLine {
  uint64_t at_ms = 0;  // on the scale of to_ms; 0: never
  LineEnd end;

  uint64_t packed() const { return at_ms << 20 | static_cast<uint64_t>(end.state) << 16 | static_cast<uint16_t>(end.rank); }
  static ToldLine of(uint64_t packed) {
    return {packed >> 20, {static_cast<int>(packed & 0xffff), static_cast<LineState>(packed >> 16 & 0xf)}};
  }
};

}  // namespace fccl::core
