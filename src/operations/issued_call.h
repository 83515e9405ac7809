// IssuedCall: one issued call, run on the caller's thread or by the worker.
#pragma once

#include <atomic>
#include <memory>
#include <span>

#include "health/control.h"
#include "host/lane.h"
#include "host/task.h"
#include "metrics/statistics.h"
#include "waiting/advance.h"

namespace fccl::core {

struct HierarchicalLane;

// A lane with the order of its operations: the one thread that issues gives out tickets, and the thread that has the turn runs
// operations in their order.
struct LaneQueue {
  Lane lane;
  std::unique_ptr<HierarchicalLane> hierarchical;  // null if all ranks share a host, and until the hosts have met
  std::atomic<uint64_t> issued{0};
  std::atomic<uint64_t> finished{0};

  LaneQueue(std::shared_ptr<Segment> segment, LaneId id, int local, std::vector<int> ranks);
  ~LaneQueue();
  LaneQueue(const LaneQueue&) = delete;
  LaneQueue& operator=(const LaneQueue&) = delete;
  // Returns the number of ranks of all hosts.
  int ranks() const;
  bool is_idle() const { return finished.load(std::memory_order_acquire) == issued.load(std::memory_order_relaxed); }
  // Only one thread issues, so no read-modify-write is needed.
  uint64_t take_tickets(uint64_t count) {
    const uint64_t ticket = issued.load(std::memory_order_relaxed);
    issued.store(ticket + count, std::memory_order_relaxed);
    return ticket;
  }
};

// References that the operations of one communicator share.
struct CallContext {
  Control& control;
  Statistics& statistics;
  bool oversubscribed;  // more ranks than cores on this host
  std::span<const LaneQueue> lanes;
  std::chrono::microseconds nap{0};  // sleep of a blocking call between its polls
};

// Made when the call is issued. Either the caller runs it at once by run(), or the worker calls advance() until it is done or
// fails.
class IssuedCall {
 public:
  // The turn of a call in its lane.
  struct Ticket {
    uint64_t number;
    uint64_t calls = 1;  // calls that end with it, for the statistics: 0 for a sub-call that is not the last one
  };

  IssuedCall(const CallContext& around, LaneQueue& queue, const Task& task, std::chrono::milliseconds timeout)
      : IssuedCall(around, queue, task, timeout, {queue.take_tickets(1)}) {}
  // Takes a ticket that was given out before.
  IssuedCall(const CallContext& around, LaneQueue& queue, const Task& task, std::chrono::milliseconds timeout, Ticket ticket)
      : around_(around), queue_(queue), task_(task), wait_{task_, timeout}, ticket_(ticket) {}
  IssuedCall(const IssuedCall&) = delete;
  IssuedCall& operator=(const IssuedCall&) = delete;

  // Copies the call's blocks into this object; otherwise they must live until run() returns.
  void keep_blocks();
  Result<void> run();
  // Advances as far as one step goes without waiting.
  Result<Advance> advance();
  // True if the call takes no longer than waking another thread, once its peers have come.
  bool is_short() const;
  // True if polling again and again keeps no peer from the processor.
  bool may_spin() const { return !around_.oversubscribed; }
  // Returns how long its runner should yield between steps that get nowhere, before it sleeps between them.
  std::chrono::microseconds yielding() const { return poll().yield_for; }

 private:
  Result<Advance> advance_in_turn();
  Result<void> begin();
  bool is_reached() const;
  void start(const Route& route);
  void start_entry();
  void time_from_here();
  bool goes_on();
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
  bool running_ = false;
};

}  // namespace fccl::core
