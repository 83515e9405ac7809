// Reads the waits of ranks one by one.
#include "health/wait_line.h"

#include "health/peers.h"
#include "segment/rank_state.h"

namespace fccl::core {
namespace {

uint64_t oldest_that_counts(const WaitLine::Wanted& wanted) { return to_ms(Clock::now() - wanted.waited / 2); }

}  // namespace

ToldLine WaitLine::told_of(int rank) const {
  return ToldLine::of(peers_.segment().line_beyond(rank).load(std::memory_order_relaxed));
}

void WaitLine::hear(int rank, const LineEnd& end) {
  peers_.segment().line_beyond(rank).store(ToldLine{to_ms(Clock::now()), end}.packed(), std::memory_order_relaxed);
}

// Returns the rank that `rank` waits for; a wait for any rank ends the line. A rank of this host publishes its wait every
// millisecond, and one that has not done so for long is not waiting. For a rank of another host its leader has reported.
int WaitLine::awaited_by(int rank, const Wanted& wanted) const {
  int awaited = peers_.segment().awaited_beyond(rank).load(std::memory_order_relaxed);
  if (peers_.is_here(rank)) {
    const uint64_t oldest = oldest_that_counts(wanted);
    Waiting waiting;
    for (int place = 0; place <= kLanes; ++place)
      if (waiting.at_ms < oldest)
        waiting = peers_.state_of(rank).get_waiting(static_cast<LaneId>((wanted.lane + place) % (kLanes + 1)));
    awaited = waiting.at_ms < oldest ? -1 : waiting.rank;
  }
  return awaited < peers_.count() ? awaited : -1;
}

LineEnd WaitLine::end_of(int first, const Wanted& wanted) const {
  LineEnd end{first};
  if (first < 0) return end;
  for (int steps = 0; steps < peers_.count(); ++steps) {
    const ToldLine told = peers_.is_here(end.rank) ? ToldLine{} : told_of(end.rank);
    const bool is_told = told.at_ms >= oldest_that_counts(wanted) && told.end.rank < peers_.count();
    // A rank knows more of the end of its line than its leader, but the host of the rank at that end knows most.
    const bool is_last = is_told && (told.end.rank == end.rank || told.end.state != LineState::open);
    if (is_last && !peers_.is_here(told.end.rank)) return told.end;
    const int next = is_told ? told.end.rank : awaited_by(end.rank, wanted);
    if (next < 0) return end;
    if (next == peers_.rank()) return {next, LineState::circle};
    end = {next, is_told ? told.end.state : LineState::open};
  }
  return {first, LineState::circle};
}

}  // namespace fccl::core
