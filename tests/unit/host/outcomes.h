// Questions that tests ask about the outcome of a phase, and the step to the next phase.
#pragma once

#include "host/lane.h"
#include "host/path.h"
#include "host/phases.h"
#include "host/task.h"

namespace fccl::core {

// Returns -1 if no rank differs.
inline int differing_rank(const Outcome& outcome) {
  if (const auto* differs = std::get_if<Differs>(&outcome)) return differs->rank;
  if (const auto* other = std::get_if<OtherCounts>(&outcome)) return other->rank;
  return -1;
}

// Returns no bytes in either direction if the counts do not differ.
inline OtherCounts counts_of(const Outcome& outcome) {
  const auto* other = std::get_if<OtherCounts>(&outcome);
  return other != nullptr ? *other : OtherCounts{-1, 0, 0};
}

inline bool is_done(const Outcome& outcome) { return std::holds_alternative<Done>(outcome); }
inline bool goes_on(const Outcome& outcome) { return std::holds_alternative<GoOnBy>(outcome); }
inline bool has_failed(const Outcome& outcome) { return std::holds_alternative<Failed>(outcome); }

// Returns the route by which a call goes on. A call that does not go on is alone.
inline Route next_route(const Outcome& outcome) {
  const auto* next = std::get_if<GoOnBy>(&outcome);
  return next != nullptr ? next->route : Route{};
}

// If the call goes on by a route, starts the phase of this route in the place of the phase that has ended, and returns true.
inline bool starts_next(Phase& phase, Lane& lane, const Task& task) {
  if (!goes_on(phase.outcome())) return false;
  const Route route = next_route(phase.outcome());
  phase.end();
  phase = phase_of(route, task.call.signature.collective)(lane.frame, lane, route, task);
  return true;
}

}  // namespace fccl::core
