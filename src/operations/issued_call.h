// IssuedCall: one issued call on its way to its end, on the caller's thread or on the worker.
#pragma once

#include <atomic>
#include <memory>
#include <span>

#include "node/lane.h"
#include "node/path.h"
#include "operations/advance.h"
#include "operations/control.h"
#include "operations/statistics.h"

namespace fccl {

struct HierarchicalLane;

// A lane with the order of its operations: tickets are given at issue, by the one thread that issues, and run in that order, by
// whichever thread has the turn.
struct LaneQueue {
  Lane lane;
  std::unique_ptr<HierarchicalLane> hierarchical;  // null where all ranks share a host, and until the hosts have met
  std::atomic<uint64_t> issued{0};
  std::atomic<uint64_t> finished{0};

  LaneQueue(std::shared_ptr<Segment> segment, LaneId id, int local, std::vector<int> ranks);
  ~LaneQueue();
  LaneQueue(const LaneQueue&) = delete;
  LaneQueue& operator=(const LaneQueue&) = delete;
  // Of all hosts.
  int ranks() const;
  bool is_idle() const { return finished.load(std::memory_order_acquire) == issued.load(std::memory_order_relaxed); }
  // Only one thread issues, so no read-modify-write is needed.
  uint64_t take_tickets(uint64_t count) {
    const uint64_t ticket = issued.load(std::memory_order_relaxed);
    issued.store(ticket + count, std::memory_order_relaxed);
    return ticket;
  }
};

// What the operations of one communicator share.
struct CallContext {
  Control& control;
  Statistics& statistics;
  bool oversubscribed;  // more ranks than cores on this host
  std::span<const LaneQueue> lanes;
  std::chrono::microseconds nap{0};  // of a blocking call, between its looks
};

// Made when the call is issued. Either run() at once, by the caller, or advance() until it is done or fails, by the worker.
class IssuedCall {
 public:
  // When it runs, in the order of its lane.
  struct Ticket {
    uint64_t number;
    uint64_t calls = 1;  // that end with it, for the statistics: 0 of a sub-call that is not the last one
  };

  IssuedCall(const CallContext& around, LaneQueue& queue, const Task& task, std::chrono::milliseconds timeout)
      : IssuedCall(around, queue, task, timeout, {queue.take_tickets(1)}) {}
  // With a ticket that was taken before.
  IssuedCall(const CallContext& around, LaneQueue& queue, const Task& task, std::chrono::milliseconds timeout, Ticket ticket)
      : around_(around), queue_(queue), task_(task), wait_{task_, timeout}, ticket_(ticket) {}
  IssuedCall(const IssuedCall&) = delete;
  IssuedCall& operator=(const IssuedCall&) = delete;

  // So that the blocks of the call live as long as this; else they must live until run() returns.
  void keep_blocks();
  Result<void> run();
  // One step as far as it goes without waiting.
  Result<Advance> advance();
  // Whether it is no longer than waking another thread, where its peers have come.
  bool is_short() const;
  // Whether looking again and again keeps no peer from the processor.
  bool may_spin() const { return !around_.oversubscribed; }
  // How long whoever advances it had better yield between steps that get nowhere, before it sleeps between them.
  std::chrono::microseconds yielding() const { return poll().yield_for; }

 private:
  Result<Advance> advance_in_turn();
  Result<void> begin();
  bool is_reached() const;
  void start(Path path);
  bool goes_on();
  Result<void> conclude(Outcome outcome);
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
  Path path_ = Path::alone;
  bool timed_ = false;
  Phase phase_;
  Clock::time_point began_{};
  Clock::time_point next_look_{};
  bool running_ = false;
};

}  // namespace fccl
