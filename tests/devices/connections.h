// Connections: the few ways into a simulated GPU, which its queues share.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fccl::core::simulated {

// A line of entries, which begin in the order in which they were enqueued, whatever their queues: one that waits for its queue,
// a word or a mark holds up all that stand behind it. Any thread may call; it orders nothing, since queues must not count on
// it.
class Connection {
 public:
  // Returns the place of the entry.
  uint64_t join() { return joined_.fetch_add(1, std::memory_order_relaxed); }
  bool is_first(uint64_t place) const { return left_.load(std::memory_order_relaxed) == place; }
  // By the first.
  void leave() { left_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> joined_{0}, left_{0};
};

enum class Way : uint8_t { kernels_and_words, copies_in, copies_out };

// So many for each way; queues are dealt onto them in turn. Constant once made.
class Connections {
 public:
  explicit Connections(int count) : count_(static_cast<uint64_t>(std::clamp(count, 1, 32))), all_(count_ * 3) {}

  Connection& of(uint64_t queue, Way way) { return all_[static_cast<size_t>(way) * count_ + queue % count_]; }

 private:
  uint64_t count_;
  std::vector<Connection> all_;
};

}  // namespace fccl::core::simulated
