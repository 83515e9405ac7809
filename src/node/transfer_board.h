// TransferBoard: what the two ranks of an ordered pair show each other of their transfers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/transfer.h"
#include "system/counter.h"

namespace fccl {

// A notice with room beside it for a small payload, in one cache line.
struct alignas(64) NoticeLine {
  std::atomic<uint64_t> word{0};  // 1 + the number of the notice that is there
  Notice notice;
  std::array<std::byte, 32> beside{};
};
static_assert(sizeof(NoticeLine) == 64);

// Of a source and a destination. Lies in the segment; each line is written by one of the two alone. Counters never go back.
struct TransferBoard {
  static constexpr uint64_t kNotices = 16;
  static constexpr int kEagerSlots = 8;
  struct alignas(64) Releases {
    std::array<std::atomic<uint64_t>, kEagerSlots> of_slot{};
  };

  // By the source.
  std::array<NoticeLine, kNotices> notices;
  Counter published;  // slices put into the transfer slots
  // By the destination.
  Counter taken;      // notices
  Counter drained;    // slices taken out of the slots
  Releases releases;  // how often each eager payload has been taken
};

}  // namespace fccl
