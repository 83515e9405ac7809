// Tests of the fence that one thread makes in all others.
#include "os/thread_fence.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace fccl::core {
namespace {

constexpr int kRounds = 10'000;
constexpr auto kLongest = std::chrono::seconds(1);

struct Words {
  alignas(64) std::atomic<int> hot{0};
  alignas(64) std::atomic<int> cold{0};
};

// Yields after a while, since both threads may share a processor.
void await_round(const std::atomic<int>& word, int round) {
  for (int looks = 0; word.load(std::memory_order_acquire) < round; ++looks)
    if (looks > 1000) std::this_thread::yield();
}

// Two threads that store and then load each other's word: without a fence both may miss the other's store on any processor.
TEST(ThreadFence, lets_at_least_one_of_two_threads_see_the_others_store) {
  Words words;
  std::atomic<int> begun{0}, ended{0};
  std::atomic<bool> over{false};
  int seen_by_hot = 0;
  std::thread hot([&] {
    for (int round = 1; round <= kRounds; ++round) {
      await_round(begun, round);
      if (over.load(std::memory_order_relaxed)) return;
      words.hot.store(round, std::memory_order_relaxed);
      fence_compiler();
      seen_by_hot = words.cold.load(std::memory_order_relaxed);
      ended.store(round, std::memory_order_release);
    }
  });
  int missed = 0;
  const auto end = std::chrono::steady_clock::now() + kLongest;
  for (int round = 1; round <= kRounds && std::chrono::steady_clock::now() < end; ++round) {
    begun.store(round, std::memory_order_release);
    // The other thread needs some time to begin; this makes both stores meet in some rounds.
    for (int spins = round % 256; spins > 0; --spins) fence_compiler();
    words.cold.store(round, std::memory_order_relaxed);
    fence_all_threads();
    const int seen_by_cold = words.hot.load(std::memory_order_relaxed);
    await_round(ended, round);
    missed += seen_by_cold != round && seen_by_hot != round;
  }
  over = true;
  begun = kRounds;
  hot.join();
  EXPECT_EQ(missed, 0);
}

}  // namespace
}  // namespace fccl::core
