// Packs the facts into the atomic words of the state.
#include "segment/rank_state.h"

#include <bit>

#include "arena/reservation.h"

namespace fccl::core {

void RankState::set_waiting(LaneId lane, const Waiting& value) {
  waiting[lane].store(value.at_ms << 16 | static_cast<uint16_t>(value.rank), std::memory_order_relaxed);
}

Waiting RankState::get_waiting(LaneId lane) const {
  const uint64_t packed = waiting[lane].load(std::memory_order_relaxed);
  return {packed >> 16, static_cast<int>(packed & 0xffff)};
}

void RankState::set_processors(const Processors& allowed) {
  for (size_t i = 0; i < allowed.size(); ++i)
    if (allowed[i]) processors[i / 64].fetch_or(uint64_t{1} << (i % 64), std::memory_order_relaxed);
}

Processors RankState::get_processors() const {
  Processors allowed;
  // Skips empty words, because each rank of a host reads the words of all.
  for (size_t word = 0; word < processors.size(); ++word)
    for (uint64_t left = processors[word].load(std::memory_order_relaxed); left != 0; left &= left - 1)
      allowed.set(word * 64 + static_cast<size_t>(std::countr_zero(left)));
  return allowed;
}

void RankState::set_mark(const MemoryMark& value) {
  mark[0].store(value.address, std::memory_order_relaxed);
  mark[1].store(value.value, std::memory_order_relaxed);
}

MemoryMark RankState::get_mark() const {
  return {mark[0].load(std::memory_order_relaxed), mark[1].load(std::memory_order_relaxed)};
}

void RankState::set_arena(const ArenaName& value) {
  arena[0].store(static_cast<uint64_t>(value.descriptor), std::memory_order_relaxed);
  arena[1].store(value.id[0], std::memory_order_relaxed);
  arena[2].store(value.id[1], std::memory_order_relaxed);
  arena[3].store(value.bytes, std::memory_order_relaxed);
}

ArenaName RankState::get_arena() const {
  return {static_cast<int>(arena[0].load(std::memory_order_relaxed)),
          {arena[1].load(std::memory_order_relaxed), arena[2].load(std::memory_order_relaxed)},
          arena[3].load(std::memory_order_relaxed)};
}

}  // namespace fccl::core
