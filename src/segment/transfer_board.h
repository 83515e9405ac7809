// TransferBoard: the memory through which two ranks run their transfers in one direction.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/transfer.h"
#include "waiting/counter.h"

namespace fccl::core {

// A notice with room beside it for a small payload, in one cache line.
struct alignas(64) NoticeLine {
  std::atomic<uint64_t> word{0};  // 1 + the number of the notice in this line
  Notice notice;
  std::array<std::byte, 32> beside{};
};
static_assert(sizeof(NoticeLine) == 64);

// The board of one source and one destination, in the segment. One of the two ranks writes each line. Counters never decrease.
struct TransferBoard {
  static constexpr uint64_t kNotices = 16;
  static constexpr int kEagerSlots = 8;
  struct alignas(64) Releases {
    std::array<std::atomic<uint64_t>, kEagerSlots> of_slot{};
  };

  // Written by the source.
  std::array<NoticeLine, kNotices> notices;
  Counter published;  // slices put into the transfer slots
  // Written by the destination.
  Counter taken;      // notices taken
  Counter drained;    // slices taken out of the slots
  Releases releases;  // how often each eager slot was released
};

}  // namespace fccl::core
