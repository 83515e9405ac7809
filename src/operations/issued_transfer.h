// IssuedTransfer: one issued send or receive on its way to its end, on the caller's thread or on the worker.
#pragma once

#include <chrono>
#include <memory>

#include "operations/advance.h"
#include "operations/control.h"
#include "operations/transfer_lane.h"

namespace fccl {

// Made when the call is issued, as one of IssuedTransfers; advance() until it is done or fails, by one thread: the caller's or
// the worker. Ends before its communicator does, which it touches no more then.
class IssuedTransfer {
 public:
  // What all transfers of one communicator share.
  struct Around {
    Control& control;
    TransferLane& lane;
    std::chrono::milliseconds timeout;
  };

  // `together`: of those that are issued with it.
  IssuedTransfer(const Around& around, const TransferEnd& transfer, TransfersProgress* together)
      : around_(around), operation_(transfer, together) {}
  IssuedTransfer(const IssuedTransfer&) = delete;
  IssuedTransfer& operator=(const IssuedTransfer&) = delete;

  // Gives it its place among those of its order; by whoever does not run it at once.
  void queue() { around_.lane.issue(operation_); }
  // The same, and starts it if nothing of its order comes before it.
  void queue_and_start(TransferLane::Turn& turn) { started_ = turn.issue_and_start(operation_); }
  // The rank at the other end; below zero while that may be any.
  int other() const { return operation_.other.load(std::memory_order_relaxed); }
  bool has_started() const { return started_; }
  // A step has said how.
  bool is_over() const { return is_over_; }
  TransferLane& lane() const { return around_.lane; }
  // One step as far as it goes without waiting. Its owner has asked the lane for progress, and comes once a millisecond at
  // most. `judges`: whether the slow path is asked if it stands still; `warns`: whether that may say so in the log.
  Result<Advance> advance(bool judges, bool warns);
  bool has_warned() const { return wait_ && wait_->reported; }

 private:
  Result<Advance> step();
  Result<Advance> conclude_step(Result<Advance> progress);
  Result<bool> start();
  Result<void> conclude();
  Result<void> end(Result<void> result);
  Result<void> look(bool warns);
  static void catch_up(void* lane) { static_cast<TransferLane*>(lane)->catch_up(); }

  Around around_;
  TransferOperation operation_;
  std::unique_ptr<Wait> wait_;  // null until something is awaited for long
  uint64_t seen_ = 0;           // steps
  bool started_ = false;
  bool is_over_ = false;
};

}  // namespace fccl
