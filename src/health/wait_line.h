// WaitLine: follows a line of waits, from the rank that somebody waits for to the one that waits for nobody.
#pragma once

#include "os/clock.h"
#include "segment/lane_id.h"
#include "segment/told_line.h"

namespace fccl::core {

class Peers;

// A WaitJudge owns it. Any thread may call, also after a failure. It reads what ranks of this host publish, and what those of
// other hosts have told.
class WaitLine {
 public:
  explicit WaitLine(const Peers& peers) : peers_(peers) {}

  // The wait on whose behalf a line is followed: its lane comes before other lanes on which a rank waits, and what is older
  // than half of its time counts for nothing.
  struct Wanted {
    LaneId lane = kGatherLane;
    Clock::duration waited{};
  };

  // Returns the last rank of the line that begins with `first`. A line that comes back to this rank is a circle, since this
  // rank waits when it asks for an end.
  LineEnd end_of(int first, const Wanted& wanted) const;

  // The ranks of this host share what a rank of another host has told of its line.
  ToldLine told_of(int rank) const;
  void hear(int rank, const LineEnd& end);

 private:
  int awaited_by(int rank, const Wanted& wanted) const;

  const Peers& peers_;
};

}  // namespace fccl::core
