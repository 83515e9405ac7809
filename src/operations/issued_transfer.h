// IssuedTransfer: one issued send or receive on its way to its end, on the caller's thread or on the worker.
#pragma once

#include <chrono>
#include <memory>

#include "operations/advance.h"
#include "operations/control.h"
#include "operations/transfer_lane.h"

namespace fccl {

// Made when the call is issued; advance() until it is done or fails, by one thread: the caller's or the worker. Ends before its
// communicator does, which it touches no more then.
class IssuedTransfer {
 public:
  // What all transfers of one communicator share.
  struct Around {
    Control& control;
    TransferLane& lane;
    std::chrono::milliseconds timeout;
  };

  IssuedTransfer(const Around& around, const TransferEnd& transfer) : around_(around), operation_(transfer) {}
  IssuedTransfer(const IssuedTransfer&) = delete;
  IssuedTransfer& operator=(const IssuedTransfer&) = delete;

  // Gives it its place among those of its order; by whoever does not run it at once.
  void queue() { around_.lane.issue(operation_); }
  // The same, and starts it if nothing of its order comes before it.
  void queue_and_start(TransferLane::Turn& turn) { started_ = turn.issue_and_start(operation_); }
  bool has_ended() const { return operation_.has_ended(); }
  // advance() has said how.
  bool is_over() const { return is_over_; }
  TransferLane& lane() const { return around_.lane; }
  // One step as far as it goes without waiting.
  Result<Advance> advance();
  // The same for whoever has just asked the lane for progress.
  Result<Advance> advance_behind_progress();

 private:
  Result<Advance> look_at_steps();
  Result<bool> start();
  Result<void> conclude();
  Result<void> end(Result<void> result);
  Result<void> look();
  static void catch_up(void* lane) { static_cast<TransferLane*>(lane)->catch_up(); }

  Around around_;
  TransferOperation operation_;
  std::unique_ptr<Wait> wait_;  // null until something is awaited for long
  uint64_t seen_ = 0;           // steps
  bool started_ = false;
  bool is_over_ = false;
  int idle_steps_ = 0;  // since something of it moved
  Clock::time_point next_look_{};
};

}  // namespace fccl
