// TransferOperation: one end of a transfer, as the lane that moves it and its waiting owner see it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/transfer.h"
#include "os/clock.h"
#include "transfers/linked_queue.h"

namespace fccl::core {

// Progress of transfers that are issued together, so that their owner need not look at each. The thread that has the lane's
// turn writes it.
struct TransfersProgress {
  std::atomic<uint64_t> moved{0};    // raised whenever one of them has moved
  std::atomic<uint64_t> ended{0};    // number of those that have ended
  std::atomic<bool> differs{false};  // one of them does not match its other end

  static void raise(std::atomic<uint64_t>& counter) {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
};

// The thread that issued it owns it, and keeps it until it has ended or has been withdrawn from the lane. Until then the owner
// may read only the members that say so; the rest belongs to the thread that has the lane's turn.
struct TransferOperation {
  explicit TransferOperation(const TransferEnd& asked, TransfersProgress* progress = nullptr)
      : transfer(asked), together(progress), other(asked.peer) {}

  const TransferEnd transfer;
  // For the owner, too: it was given a place among those that share its order; it has started.
  bool has_place = false, has_started = false;
  TransfersProgress* const together;  // null: it is issued alone
  // For the owner: raised whenever it has moved, and at last by kEnd, from which on the owner may use all of it.
  static constexpr uint64_t kEnd = uint64_t{1} << 62;
  std::atomic<uint64_t> steps{0};
  bool has_ended() const { return steps.load(std::memory_order_acquire) >= kEnd; }
  // Only the thread that has the turn calls it, so no read-modify-write is needed. The owner may destroy both once `steps` has
  // kEnd.
  void raise_steps(uint64_t by) {
    if (together != nullptr) {
      if (by == kEnd) TransfersProgress::raise(together->ended);
      if (differs) together->differs.store(true, std::memory_order_release);
      TransfersProgress::raise(together->moved);
    }
    steps.store(steps.load(std::memory_order_relaxed) + by, std::memory_order_release);
  }
  // For the owner, once it has ended: true if the other end does not match, and the other end's envelope.
  bool differs = false;
  Envelope theirs;

  std::atomic<int> other;      // the rank at the other end; below zero while it may be any. For the owner, too
  uint64_t number = 0;         // number of the offer, as the sender counts
  size_t moved = 0;            // bytes put or taken; before the offer, bytes brought into memory
  const void* lent = nullptr;  // the sender's address of the bytes, if they may be read there
  Clock::time_point began{};   // when a transfer that does not fit along with its notice began

  TransferOperation* next = nullptr;  // in its queue
  uint64_t key = 0;                   // key of its KeyedQueue
};

using TransferQueue = LinkedQueue<TransferOperation>;

}  // namespace fccl::core
