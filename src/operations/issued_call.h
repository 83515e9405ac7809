// IssuedCall: one issued call, run on the caller's thread or by the worker.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "health/wait.h"
#include "host/phase.h"
#include "host/task.h"
#include "operations/call_context.h"
#include "operations/stream_item.h"
#include "os/clock.h"
#include "waiting/advance.h"

namespace fccl::core {

struct LaneQueue;

// Made when the call is issued. Either the caller runs it at once by run(), or the worker calls advance() until it is done or
// fails.
class IssuedCall final : public StreamItem {
 public:
  // The turn of a call in its lane.
  struct Ticket {
    uint64_t number;
    uint64_t calls = 1;  // calls that end with it, for the statistics: 0 for a sub-call that is not the last one
  };

  IssuedCall(const CallContext& around, LaneQueue& queue, const Task& task, std::chrono::milliseconds timeout);
  // Takes a ticket that was given out before.
  IssuedCall(const CallContext& around, LaneQueue& queue, const Task& task, std::chrono::milliseconds timeout, Ticket ticket);
  IssuedCall(const IssuedCall&) = delete;
  IssuedCall& operator=(const IssuedCall&) = delete;

  // Copies the call's blocks into this object; otherwise they must live until run() returns.
  void keep_blocks();
  Result<void> run();
  Result<Advance> advance() override;
  // For a call on GPU memory, once it has ended well: counts what a processor has read in it, and `beside` it.
  void count_copied(size_t beside = 0) const;
  // Likewise, where a processor has brought the input to where the call finds it, and taken the output away.
  void count_staged() const;
  bool is_short() const override;
  bool may_spin() const override { return !around_.oversubscribed; }
  std::chrono::microseconds yielding() const override { return poll().yield_for; }

 private:
  Result<Advance> advance_in_turn();
  Result<void> begin();
  bool is_reached() const;
  void start(const Route& route);
  void start_entry();
  void time_from_here();
  bool goes_on();
  void note_waits(Clock::time_point ended);
  Result<void> conclude(const Outcome& outcome);
  Result<void> raise(Error error) const;
  void pass_turn();
  Poll poll() const;
  static Result<void> look(void* operation, const Awaited& awaited);
  static bool is_here(void* operation, const Awaited& awaited);
  Result<void> look_at_wire(const Awaited& awaited);
  Result<void> look_at_other_lanes() const;

  CallContext around_;
  LaneQueue& queue_;
  Task task_;
  Wait wait_;
  Ticket ticket_;
  std::unique_ptr<const UnevenBlocks> blocks_;
  Route route_;
  bool timed_ = false;
  Phase phase_;
  Clock::time_point began_{};
  Clock::time_point next_look_{};
  // When the call went on through slots, and how many slices the lane had passed by then.
  Clock::time_point all_entered_{};
  uint64_t slices_before_ = 0;
  bool running_ = false;
};

}  // namespace fccl::core
