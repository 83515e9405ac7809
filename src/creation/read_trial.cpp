// Runs one AlltoAll all three ways, in turn, and takes the least time of a few.
#include "creation/read_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "creation/init_calls.h"
#include "host/lane.h"
#include "kernels/copy.h"
#include "os/clock.h"
#include "os/log.h"

namespace fccl::core {
namespace {

constexpr size_t kBlock = 64 << 10;
constexpr size_t kAllBlocks = 0, kNoBlock = std::numeric_limits<size_t>::max();

// Nanoseconds, of one rank or the sum of all.
struct Times {
  int64_t through_slots = std::numeric_limits<int64_t>::max();
  int64_t past_caches = std::numeric_limits<int64_t>::max();  // through slots that are written so
  int64_t read = std::numeric_limits<int64_t>::max();
};

// Writes the slots that the trial uses, and reads those of the peers, before it begins. The kernel gives a slot its memory on
// first use, which takes several times as long as the copy. And a slot in use lies in the cache of the peer that last read it:
// to write it there takes long if that peer's processor is far.
Result<void> use_slots(InitCalls& calls, const Lane& lane) {
  const size_t bytes = std::min(lane.slots.pair_ring_bytes(), kTrialWays * kTrialRounds * kBlock);
  std::vector<std::byte> block(kBlock);
  const auto each_block = [&](const auto& use) {
    for (int i = 1; i < lane.ranks(); ++i)
      for (size_t at = 0; at < bytes; at += kBlock) use(lane.peer(i), at, std::min(kBlock, bytes - at));
  };
  const int me = lane.rank();
  each_block(
      [&](int peer, size_t at, size_t length) { copy_bytes(lane.slots.pair_slot(me, peer, 0) + at, block.data(), length); });
  FCCL_TRY(calls.barrier());
  each_block(
      [&](int peer, size_t at, size_t length) { copy_bytes(block.data(), lane.slots.pair_slot(peer, me, 0) + at, length); });
  return calls.barrier();
}

// Sums up the least times of all ranks.
Result<Times> sum_of(InitCalls& calls, const Times& mine, int ranks) {
  std::vector<Times> of_all(static_cast<size_t>(ranks));
  FCCL_TRY(calls.exchange(&mine, of_all.data(), sizeof mine));
  Times sum{0, 0, 0};
  for (const Times& each : of_all) {
    sum.through_slots += each.through_slots;
    sum.past_caches += each.past_caches;
    sum.read += each.read;
  }
  return sum;
}

void tell(const Times& sum, const Gains& gains, int ranks) {
  const auto mean_us = [&](int64_t nanoseconds) { return static_cast<double>(nanoseconds) / ranks / 1e3; };
  const std::string read = gains.reading == 0 ? "" : fmt::format("{:.1f} us by reading the peers' memory, ", mean_us(sum.read));
  log(LogLevel::info,
      fmt::format("an AlltoAll of {} KiB for each of {} ranks took {}{:.1f} us through slots and {:.1f} us through slots that "
                  "are written past the caches: slots are written {} the caches",
                  kBlock >> 10, ranks, read, mean_us(sum.through_slots), mean_us(sum.past_caches),
                  gains.streaming >= kTuning.streaming_gains ? "past" : "through"));
}

}  // namespace

// Each call has buffers of its own, like a trainer's: reused buffers would still lie in a cache, where slots lose more than in
// practice.
Result<Gains> try_ways(InitCalls& calls, Lane& lane) {
  const size_t bytes = static_cast<size_t>(lane.ranks()) * kBlock;
  const std::vector<std::byte> given(kTrialWays * kTrialRounds * bytes, std::byte{1});
  std::vector<std::byte> taken(given.size());
  Times mine;
  size_t offset = 0;
  const auto try_with = [&](size_t least_block, CopyBytes put, int64_t& least) -> Result<void> {
    lane.reach.attaching.least_block = least_block;
    lane.slots.put = put;
    const Clock::time_point begin = Clock::now();
    FCCL_TRY(calls.swap(given.data() + offset, taken.data() + offset, kBlock));
    least = std::min<int64_t>(least, (Clock::now() - begin).count());
    offset += bytes;
    return {};
  };
  FCCL_TRY(use_slots(calls, lane));
  for (int round = 0; round < kTrialRounds; ++round) {
    FCCL_TRY(try_with(kNoBlock, stream_bytes, mine.past_caches));
    FCCL_TRY(try_with(kNoBlock, copy_bytes, mine.through_slots));
    FCCL_TRY(try_with(kAllBlocks, copy_bytes, mine.read));
  }
  FCCL_TRY_ASSIGN(const Times sum, sum_of(calls, mine, lane.ranks()));
  const auto ratio = [](int64_t time, int64_t other) { return static_cast<double>(time) / static_cast<double>(other); };
  Gains gains{.reading = 0, .streaming = ratio(sum.through_slots, sum.past_caches)};
  if (lane.reach.attaching.is_open) gains.reading = ratio(std::min(sum.through_slots, sum.past_caches), sum.read);
  tell(sum, gains, lane.ranks());
  return gains;
}

}  // namespace fccl::core
