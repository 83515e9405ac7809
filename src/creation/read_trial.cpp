// Runs one AlltoAll both ways, in turn, and takes the least time of a few.
#include "creation/read_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "creation/init_calls.h"
#include "host/lane.h"
#include "os/clock.h"
#include "os/log.h"
#include "segment/peer_memory.h"

namespace fccl::core {
namespace {

constexpr size_t kBlock = 64 << 10;
constexpr size_t kAllBlocks = 0, kNoBlock = std::numeric_limits<size_t>::max();

// Nanoseconds, of one rank or the sum of all.
struct Times {
  int64_t through_slots = std::numeric_limits<int64_t>::max();
  int64_t read = std::numeric_limits<int64_t>::max();
};

// Makes the slots that the trial uses resident, for their writers and their readers, before any rank writes to them. The kernel
// gives a slot its memory on first use, which takes several times as long as the copy, and would be taken for the cost of
// slots.
Result<void> touch_slots(InitCalls& calls, const Lane& lane) {
  const size_t bytes = std::min(lane.slots.pair_ring_bytes(), kTrialRounds * kBlock);
  for (int peer = 0; peer < lane.ranks(); ++peer) {
    if (peer == lane.rank()) continue;
    bring_in(lane.slots.pair_slot(lane.rank(), peer, 0), bytes);
    bring_in(lane.slots.pair_slot(peer, lane.rank(), 0), bytes);
  }
  return calls.barrier();
}

}  // namespace

// Each call has buffers of its own, like a trainer's: reused buffers would still lie in a cache, where slots lose more than in
// practice.
Result<double> gain_of_reading(InitCalls& calls, Lane& lane) {
  const auto ranks = static_cast<size_t>(lane.ranks());
  const size_t bytes = ranks * kBlock;
  const std::vector<std::byte> given(2 * kTrialRounds * bytes, std::byte{1});
  std::vector<std::byte> taken(given.size());
  Times mine;
  size_t offset = 0;
  const auto try_from = [&](size_t least_block, int64_t& least) -> Result<void> {
    lane.reach.attaching.least_block = least_block;
    const Clock::time_point begin = Clock::now();
    FCCL_TRY(calls.swap(given.data() + offset, taken.data() + offset, kBlock));
    least = std::min<int64_t>(least, (Clock::now() - begin).count());
    offset += bytes;
    return {};
  };
  FCCL_TRY(touch_slots(calls, lane));
  for (int round = 0; round < kTrialRounds; ++round) {
    FCCL_TRY(try_from(kNoBlock, mine.through_slots));
    FCCL_TRY(try_from(kAllBlocks, mine.read));
  }
  std::vector<Times> of_all(ranks);
  FCCL_TRY(calls.exchange(&mine, of_all.data(), sizeof mine));
  Times sum{0, 0};
  for (const Times& each : of_all) {
    sum.through_slots += each.through_slots;
    sum.read += each.read;
  }
  const double gain = lane.reach.attaching.is_open ? static_cast<double>(sum.through_slots) / static_cast<double>(sum.read) : 0;
  const auto mean_us = [&](int64_t nanoseconds) { return static_cast<double>(nanoseconds) / static_cast<double>(ranks) / 1e3; };
  log(LogLevel::info,
      fmt::format(
          "an AlltoAll of {} KiB for each of {} ranks took {:.1f} us by reading the peers' memory and {:.1f} us through "
          "slots: {}",
          kBlock >> 10, ranks, mean_us(sum.read), mean_us(sum.through_slots),
          gain > 1 ? "long blocks are read" : "nothing is read"));
  return gain;
}

}  // namespace fccl::core
