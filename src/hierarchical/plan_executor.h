// PlanExecutor: runs one member's steps of a plan over the slices of a call, as far as it can without waiting.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hierarchical/task.h"
#include "plan/steps.h"

namespace fccl::core {

class EntryExchange;
class WireLane;

// It lives as long as the call that the lane has begun. Sending and receiving (with additions) advance side by side, each in
// the order of slices and steps: it sends slice k + 1 while slice k is on the wire, and frees landing memory even if sending is
// blocked, so members that all send cannot block each other.
class PlanExecutor {
 public:
  // `exchange` is that of the same call.
  PlanExecutor(WireLane& lane, EntryExchange& exchange, const WireTask& task);

  // Does as much as is possible now: sends and additions of the first `ready` slices, receives of the first `room` slices, and
  // the exchange. It does no more once the exchange has found a call that differs.
  void advance(uint64_t ready, uint64_t room);
  // received: slices whose output is there; done: slices whose input, too, is no longer needed.
  uint64_t received() const { return receiving_.slice; }
  uint64_t done() const { return std::min(receiving_.slice, sending_.slice); }
  // Returns a member that the call waits for.
  int awaited_member() const { return awaited_; }

 private:
  // The next step of one kind.
  struct Cursor {
    uint64_t slice = 0;
    size_t step = 0;
  };
  class Walk;

  // Each does its cursor's next step, and returns false if that must wait.
  bool send_one();
  bool receive_one(uint64_t ready);
  bool receive(const plan::Step& step);
  bool add(const plan::Step& step, uint64_t ready);
  bool fill_stage(const plan::Step& step);
  // Moves the cursor to its first step of that kind from its slice on, or to the end of the steps.
  void find(Cursor& cursor, bool sends) const;
  bool is_done(int steps) const;
  static bool carries_partials(const plan::Step& step);
  int chunk_of(const plan::Step& step, int i) const;
  const WireSide& side_of(const plan::Step& step) const;
  size_t message_bytes(const plan::Step& step, uint64_t slice) const;

  WireLane& lane_;
  EntryExchange& exchange_;
  const WireTask& task_;
  const plan::Steps& steps_;
  Cursor sending_, receiving_;
  // The message in the stage that was taken last: its step and slice; null: the stage is empty.
  const plan::Step* staged_ = nullptr;
  uint64_t staged_slice_ = 0;
  int awaited_;
};

}  // namespace fccl::core
