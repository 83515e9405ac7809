// TransferOperation: one end of a transfer on its way to its end, as the lane that moves it and whoever waits for it see it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/transfer.h"
#include "system/clock.h"

namespace fccl {

// Owned by whoever issued it, who keeps it until it has ended or has been withdrawn from the lane. Only the members that say so
// may be read by the owner meanwhile; the rest belongs to the thread that has the lane's turn.
struct TransferOperation {
  explicit TransferOperation(const TransferEnd& asked) : transfer(asked), other(asked.peer) {}

  const TransferEnd transfer;
  // For the owner: raised whenever something of it has moved, and at last by kEnd, from where on all is the owner's.
  static constexpr uint64_t kEnd = uint64_t{1} << 62;
  std::atomic<uint64_t> steps{0};
  bool has_ended() const { return steps.load(std::memory_order_acquire) >= kEnd; }
  // By the thread that has the turn, so no read-modify-write is needed.
  void raise_steps(uint64_t by) { steps.store(steps.load(std::memory_order_relaxed) + by, std::memory_order_release); }
  // For the owner, once it has ended: whether the other end said something else, and what.
  bool differs = false;
  Envelope theirs;

  std::atomic<int> other;      // the rank at the other end; below zero while that may be any. For the owner, too
  uint64_t number = 0;         // of the offer, as the sender counts
  size_t moved = 0;            // bytes put or taken; before the offer, those that have been brought in
  const void* lent = nullptr;  // where what is received is in the sender's process, if it may be read there
  Clock::time_point began{};   // of what is too long to go along with its notice

  TransferOperation* next = nullptr;  // in its queue
};

// Operations in the order in which they came. They stay their owners'; each is in one queue at a time.
class TransferQueue {
 public:
  TransferOperation* front() const { return first_; }
  void push(TransferOperation& operation) {
    operation.next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = &operation;
    last_ = &operation;
  }
  void pop() {
    (void)remove_if([](const TransferOperation&) { return true; });
  }
  // Takes out the first one for which it holds; null if there is none.
  template <class Condition>
  TransferOperation* remove_if(Condition holds_for) {
    TransferOperation* before = nullptr;
    for (TransferOperation* each = first_; each != nullptr; before = each, each = each->next) {
      if (!holds_for(*each)) continue;
      (before == nullptr ? first_ : before->next) = each->next;
      if (last_ == each) last_ = before;
      return each;
    }
    return nullptr;
  }
  bool remove(const TransferOperation& operation) {
    return remove_if([&](const TransferOperation& each) { return &each == &operation; }) != nullptr;
  }

 private:
  TransferOperation* first_ = nullptr;
  TransferOperation* last_ = nullptr;
};

}  // namespace fccl
