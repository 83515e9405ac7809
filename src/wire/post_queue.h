// PostQueue: the operations of a lane that a rail has not taken yet, so that a phase never meets a full rail.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "wire/transport.h"

namespace fccl::core {

// It is bounded. The lane's thread pushes, and the thread that has the endpoint's turn takes.
class PostQueue {
 public:
  explicit PostQueue(size_t capacity) : operations_(std::bit_ceil(capacity)) {}
  PostQueue(PostQueue&& other) noexcept : operations_(std::move(other.operations_)) {}

  // Called by the lane.
  size_t room() const {
    return operations_.size() - (pushed_.load(std::memory_order_relaxed) - taken_.load(std::memory_order_acquire));
  }
  bool is_empty() const { return room() == operations_.size(); }
  void push(const Operation& operation) {
    const uint64_t place = pushed_.load(std::memory_order_relaxed);
    operations_[place & (operations_.size() - 1)] = operation;
    pushed_.store(place + 1, std::memory_order_release);
  }

  // Called by the endpoint: returns the oldest operations that lie together in memory.
  std::span<const Operation> oldest() const {
    const uint64_t taken = taken_.load(std::memory_order_relaxed);
    const uint64_t waiting = pushed_.load(std::memory_order_acquire) - taken;
    const uint64_t place = taken & (operations_.size() - 1);
    return {&operations_[place], std::min<uint64_t>(waiting, operations_.size() - place)};
  }
  void take(size_t number) { taken_.store(taken_.load(std::memory_order_relaxed) + number, std::memory_order_release); }

 private:
  std::vector<Operation> operations_;
  std::atomic<uint64_t> pushed_{0};
  std::atomic<uint64_t> taken_{0};
};

}  // namespace fccl::core
