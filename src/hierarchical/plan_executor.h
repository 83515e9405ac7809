// PlanExecutor: one member's steps of a plan over the slices of a call, as far as they go without waiting.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hierarchical/task.h"
#include "plan/steps.h"

namespace fccl {

class WireLane;

// Lives beside the lane, which has begun the call. Sends, and receives with additions, go on side by side, each in the order of
// slices and steps: slice k + 1 is sent while slice k is on the wire, and landing is freed however full the way out is, so that
// members who all send cannot stop each other.
class PlanExecutor {
 public:
  PlanExecutor(WireLane& lane, const WireTask& task);

  // Does all that can be done now, sends and adds of the first `ready` slices, and receives the first `room` slices. False once
  // a member was found whose call differs.
  bool advance(uint64_t ready, uint64_t room);
  // How many slices of the output are there, and of how many the input is no longer needed either.
  uint64_t received() const { return receiving_.slice; }
  uint64_t done() const { return std::min(receiving_.slice, sending_.slice); }
  // A member that keeps it from going on.
  int awaited_member() const { return awaited_; }
  int differing_member() const { return differing_; }

 private:
  // The next step of a kind to do.
  struct Cursor {
    uint64_t slice = 0;
    size_t step = 0;
  };
  class Walk;

  // Each does the next step of its cursor, unless that must wait.
  bool send_one();
  bool receive_one(uint64_t ready);
  bool receive(const plan::Step& step);
  bool add(const plan::Step& step, uint64_t ready);
  bool fill_stage(const plan::Step& step);
  // To the first step of the kind in the slice from the cursor's on, or to the end of the steps.
  void find(Cursor& cursor, bool sends) const;
  bool is_done(int steps) const;
  static bool carries_partials(const plan::Step& step);
  int chunk_of(const plan::Step& step, int i) const;
  const WireSide& side_of(const plan::Step& step) const;
  static size_t elements_of(const WireSide& side, int chunk, uint64_t slice);
  size_t message_bytes(const plan::Step& step, uint64_t slice) const;

  WireLane& lane_;
  const WireTask& task_;
  const plan::Steps& steps_;
  Cursor sending_, receiving_;
  // What lies in the stage taken last: the message of a step, in a slice; none if null.
  const plan::Step* staged_ = nullptr;
  uint64_t staged_slice_ = 0;
  int awaited_;
  int differing_ = -1;
};

}  // namespace fccl
