// IssuedTransfer: one issued send or receive on its way to its end, on the caller's thread or on the worker.
#pragma once

#include <chrono>

#include "operations/advance.h"
#include "operations/control.h"
#include "operations/transfer_lane.h"

namespace fccl {

// Made when the call is issued. Either run() at once, by the caller, or advance() until it is done or fails, by one thread.
// Ends before its communicator does, which it touches no more then.
class IssuedTransfer {
 public:
  // What all transfers of one communicator share.
  struct Around {
    Control& control;
    TransferLane& lane;
    std::chrono::milliseconds timeout;
    bool oversubscribed;  // more ranks than cores on this host
  };

  IssuedTransfer(const Around& around, const TransferEnd& transfer)
      : around_(around),
        operation_(transfer),
        wait_(operation_.transfer, around.timeout, {&IssuedTransfer::catch_up, &around_.lane}) {
    around_.lane.count_in();
  }
  IssuedTransfer(const IssuedTransfer&) = delete;
  IssuedTransfer& operator=(const IssuedTransfer&) = delete;

  // Gives it its place among those of its order; by whoever does not run it at once.
  void queue() { around_.lane.issue(operation_); }
  // The same, and starts it if nothing of its order comes before it.
  void queue_and_start() { started_ = around_.lane.issue_and_start(operation_); }
  // Started, and not ended.
  bool is_under_way() const { return started_ && !operation_.has_ended(); }
  TransferLane& lane() const { return around_.lane; }
  Result<void> run();
  // One step as far as it goes without waiting.
  Result<Advance> advance();

 private:
  Result<void> run_to_end();
  Result<Advance> advance_further();
  Result<bool> start();
  Result<void> conclude();
  Result<void> end(Result<void> result);
  Awaited awaited() const { return {&operation_.steps, seen_ + 1, operation_.other.load(std::memory_order_relaxed)}; }
  static Result<void> look(void* transfer, const Awaited& awaited);
  static void progress(void* lane) { static_cast<TransferLane*>(lane)->progress(); }
  static void catch_up(void* lane) { static_cast<TransferLane*>(lane)->catch_up(); }

  Around around_;
  TransferOperation operation_;
  Wait wait_;
  uint64_t seen_ = 0;  // steps
  bool started_ = false;
  int idle_steps_ = 0;  // since something of it moved
  Clock::time_point next_look_{};
};

}  // namespace fccl
