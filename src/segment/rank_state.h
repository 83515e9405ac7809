// RankState: the facts about a rank, besides its calls, that the ranks of its host read in their shared memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "os/processors.h"
#include "segment/lane_id.h"
#include "segment/shrink_board.h"

namespace fccl::core {

struct ArenaName;

// The rank that a rank waits for, and the time when it last published that.
struct Waiting {
  uint64_t at_ms = 0;  // on the scale of to_ms
  int rank = -1;
};

// A word in a rank's own memory. A peer that reads it there knows that the memory belongs to this rank.
struct MemoryMark {
  uint64_t address = 0;
  uint64_t value = 0;
};

// The reason of a communicator's failure, as one rank saw it.
struct Cause {
  uint32_t code = 0;  // the number of a MessageCode
  std::array<char, 1020> text{};
};

struct alignas(64) RankState {
  // The rank awaited for so long that other hosts are told; -1: none.
  std::array<std::atomic<int32_t>, kLanes + 1> waits_long{-1, -1, -1};
  std::atomic<uint32_t> left{0};                            // 1 once the rank has finalized or destroyed its communicator
  std::array<std::atomic<uint64_t>, kLanes + 1> waiting{};  // written during long waits; read by peers that wait in turn
  // Numbers of calls on GPU memory, 0 before the first: the last one issued, and the last one that the rank's GPU has reached
  // on each lane.
  std::atomic<uint64_t> issued{0};
  std::array<std::atomic<uint64_t>, kLanes> begun{};
  Cause cause;                                  // written once, before it is offered as the first failure
  std::array<std::atomic<uint64_t>, 2> mark{};  // written before the rank is ready
  std::array<std::atomic<uint64_t>, 16>
      processors{};                              // a bit per processor that the rank may run on; written before it is ready
  std::array<std::atomic<uint64_t>, 4> arena{};  // written before the rank first offers memory of its arena
  ShrinkBoard shrink;

  void set_waiting(LaneId lane, const Waiting& value);
  Waiting get_waiting(LaneId lane) const;
  void set_processors(const Processors& allowed);
  Processors get_processors() const;
  void set_mark(const MemoryMark& value);
  MemoryMark get_mark() const;
  void set_arena(const ArenaName& value);
  ArenaName get_arena() const;
};

}  // namespace fccl::core
