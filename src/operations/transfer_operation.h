// TransferOperation: one end of a transfer on its way to its end, as the lane that moves it and whoever waits for it see it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/transfer.h"
#include "operations/linked_queue.h"
#include "system/clock.h"

namespace fccl {

// How far transfers that are issued together are, so that their owner need not look at each. Written by the thread that has the
// lane's turn.
struct TransfersProgress {
  std::atomic<uint64_t> moved{0};    // raised whenever something of one of them has moved
  std::atomic<uint64_t> ended{0};    // how many have ended
  std::atomic<bool> differs{false};  // the other end of one of them said something else

  static void raise(std::atomic<uint64_t>& counter) {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
};

// Owned by whoever issued it, who keeps it until it has ended or has been withdrawn from the lane. Only the members that say so
// may be read by the owner meanwhile; the rest belongs to the thread that has the lane's turn.
struct TransferOperation {
  explicit TransferOperation(const TransferEnd& asked, TransfersProgress* progress = nullptr)
      : transfer(asked), together(progress), other(asked.peer) {}

  const TransferEnd transfer;
  TransfersProgress* const together;  // null: it is issued alone
  // For the owner: raised whenever something of it has moved, and at last by kEnd, from where on all is the owner's.
  static constexpr uint64_t kEnd = uint64_t{1} << 62;
  std::atomic<uint64_t> steps{0};
  bool has_ended() const { return steps.load(std::memory_order_acquire) >= kEnd; }
  // By the thread that has the turn, so no read-modify-write is needed. The owner may take all away once `steps` has kEnd.
  void raise_steps(uint64_t by) {
    if (together != nullptr) {
      if (by == kEnd) TransfersProgress::raise(together->ended);
      if (differs) together->differs.store(true, std::memory_order_release);
      TransfersProgress::raise(together->moved);
    }
    steps.store(steps.load(std::memory_order_relaxed) + by, std::memory_order_release);
  }
  // For the owner, once it has ended: whether the other end said something else, and what.
  bool differs = false;
  Envelope theirs;

  std::atomic<int> other;      // the rank at the other end; below zero while that may be any. For the owner, too
  uint64_t number = 0;         // of the offer, as the sender counts
  size_t moved = 0;            // bytes put or taken; before the offer, those that have been brought in
  const void* lent = nullptr;  // where what is received is in the sender's process, if it may be read there
  Clock::time_point began{};   // of what is too long to go along with its notice

  TransferOperation* next = nullptr;  // in its queue
  uint64_t key = 0;                   // by which its queue finds it, if it does
};

using TransferQueue = LinkedQueue<TransferOperation>;

}  // namespace fccl
