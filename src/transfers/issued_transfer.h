// IssuedTransfer: one issued send or receive, run on the caller's thread or by the worker.
#pragma once

#include <chrono>
#include <memory>

#include "base/result.h"
#include "health/wait.h"
#include "transfers/transfer_operation.h"
#include "waiting/advance.h"

namespace fccl::core {

class TransferLane;
struct Control;

// Made when the call is issued, as one of IssuedTransfers; one thread, the caller's or the worker, calls advance() until it is
// done or fails: it then never touches the communicator again, and ends before it.
class IssuedTransfer {
 public:
  // References that all transfers of one communicator share.
  struct Around {
    Control& control;
    TransferLane& lane;
    std::chrono::milliseconds timeout;
  };

  // `together`: the progress of the transfers that are issued with it.
  IssuedTransfer(const Around& around, const TransferEnd& transfer, TransfersProgress* together)
      : around_(around), operation_(transfer, together) {}
  IssuedTransfer(const IssuedTransfer&) = delete;
  IssuedTransfer& operator=(const IssuedTransfer&) = delete;

  // Gives it its place in its order; used by a thread that does not run it at once.
  void queue();
  // For the turn that starts it.
  TransferOperation& operation() { return operation_; }
  // Returns the rank at the other end; below zero while it may be any rank.
  int other() const { return operation_.other.load(std::memory_order_relaxed); }
  bool has_started() const { return operation_.has_started; }
  // True once a step has returned done or an error.
  bool is_over() const { return is_over_; }
  TransferLane& lane() const { return around_.lane; }
  // Advances as far as one step goes without waiting. The owner has called the lane's progress before, and calls this at most
  // once a millisecond. `judges`: a transfer that stands still goes to the slow path; `warns`: the slow path may write to the
  // log.
  Result<Advance> advance(bool judges, bool warns);
  bool has_warned() const { return wait_ && wait_->reported; }

 private:
  Result<Advance> step();
  Result<Advance> conclude_step(Result<Advance> progress);
  Result<bool> start();
  Result<void> conclude();
  Result<void> end(Result<void> result);
  Result<void> look(bool warns);
  static void catch_up(void* lane);

  Around around_;
  TransferOperation operation_;
  std::unique_ptr<Wait> wait_;  // null until the transfer has waited for long
  uint64_t seen_ = 0;           // value of `steps` at the last look
  bool is_over_ = false;
};

}  // namespace fccl::core
