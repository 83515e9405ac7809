// The loop of rounds.
#include "wire/phases.h"

namespace fccl {

Phase across_hosts([[maybe_unused]] FrameMemory& frame, Lane& lane, Span& span, Task task) {
  lane.enter(task.call, task.number, nullptr, 0);
  for (int i = 1; i < lane.ranks(); ++i) {
    co_await lane.entered(lane.peer(i));
    if (!lane.agrees(lane.peer(i))) co_return Outcome{lane.rank_of(lane.peer(i))};
  }
  Rounds rounds(lane, span, task);
  rounds.begin();
  while (rounds.next()) {
    co_await rounds.may_put();
    rounds.put();
    for (int i = 1; i < lane.ranks(); ++i) {
      co_await lane.published(lane.peer(i), rounds.number() + 1);
      rounds.take(lane.peer(i));
    }
    rounds.finish();
  }
  if (span.crossing) co_await span.crossing->ended();
  co_return Outcome{};
}

Poll poll_of(Span& span) {
  if (!span.crossing) return {};
  return {[](void* crossing) { static_cast<Crossing*>(crossing)->poll(); }, span.crossing.get()};
}

}  // namespace fccl
