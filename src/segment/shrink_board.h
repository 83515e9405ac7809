// ShrinkBoard: a rank's notice to its host that it shrinks their communicator, with the excluded ranks and the meeting place.
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>

namespace fccl::core {

// The progress of a rank's shrink. open: it waits for the survivors or makes the new communicator; failed: it has not got it;
// made: it has it.
enum class ShrinkState : uint64_t { none, open, failed, made };

// A rank's description of its last shrink.
struct ShrinkOffer {
  static constexpr int kMostRanks = 1024;
  using Excluded = std::bitset<kMostRanks>;
  using Id = std::array<uint64_t, 16>;

  uint64_t number = 0;  // the number of this rank's shrink, from 1 on
  ShrinkState state = ShrinkState::none;
  Excluded excluded{};
  Id id{};  // the first survivor's meeting place; all zeros if it could not open one
};

// Lies in shared memory. One rank writes; all ranks read at any time, even after the communicator has failed or the writer has
// died. A rank that reads during a write sees no offer.
class alignas(64) ShrinkBoard {
 public:
  void write(const ShrinkOffer& offer) {
    word_.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    std::array<uint64_t, kWords> bits{};
    for (size_t i = 0; i < offer.excluded.size(); ++i) bits[i / 64] |= uint64_t{offer.excluded[i]} << (i % 64);
    for (size_t i = 0; i < kWords; ++i) excluded_[i].store(bits[i], std::memory_order_relaxed);
    for (size_t i = 0; i < kWords; ++i) id_[i].store(offer.id[i], std::memory_order_relaxed);
    set_state(offer.number, offer.state);
  }
  // Changes the state and keeps the rest.
  void set_state(uint64_t number, ShrinkState state) {
    word_.store(number << 2 | static_cast<uint64_t>(state), std::memory_order_release);
  }
  ShrinkOffer read() const {
    const uint64_t word = word_.load(std::memory_order_acquire);
    ShrinkOffer offer{word >> 2, static_cast<ShrinkState>(word & 3)};
    for (size_t i = 0; i < offer.excluded.size(); ++i)
      offer.excluded[i] = (excluded_[i / 64].load(std::memory_order_relaxed) >> (i % 64) & 1) != 0;
    for (size_t i = 0; i < kWords; ++i) offer.id[i] = id_[i].load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    return word_.load(std::memory_order_relaxed) >> 2 == offer.number ? offer : ShrinkOffer{};
  }

 private:
  static constexpr size_t kWords = 16;

  std::atomic<uint64_t> word_{0};  // number | 2 bits of state
  std::array<std::atomic<uint64_t>, kWords> excluded_{};
  std::array<std::atomic<uint64_t>, kWords> id_{};
};

}  // namespace fccl::core
