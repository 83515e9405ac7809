// The loop of rounds.
#include "hierarchical/phases.h"

namespace fccl {
namespace {

// Who waits for a long message had better leave the core to the kernel, which moves it; who waits for a short one, be there.
constexpr size_t kLong = size_t{64} << 10;
constexpr std::chrono::microseconds kYieldsForLong{50};
constexpr std::chrono::microseconds kYieldsForShort{1000};

}  // namespace

Phase across_hosts([[maybe_unused]] FrameMemory& frame, Lane& lane, Span& span, Task task) {
  lane.enter(task.call, task.number, nullptr, 0);
  Rounds rounds(lane, span, task);
  bool goes_on = rounds.next();
  // What goes up first need not wait for the others' entries: nobody takes it before it has seen that the calls agree.
  bool is_put = goes_on && rounds.begins_up();
  if (is_put) rounds.put();
  for (int i = 1; i < lane.ranks(); ++i) {
    co_await Glance{lane.entered(lane.peer(i))};
    if (!lane.agrees(lane.peer(i))) co_return Outcome{lane.rank_of(lane.peer(i))};
  }
  rounds.begin();
  while (goes_on) {
    if (!is_put) {
      co_await Glance{rounds.may_put()};
      rounds.put();
    }
    is_put = false;
    for (int i = 1; i < lane.ranks(); ++i) {
      co_await Glance{lane.published(lane.peer(i), rounds.number() + 1)};
      rounds.take(lane.peer(i));
    }
    rounds.finish();
    goes_on = rounds.next();
  }
  if (span.crossing) co_await Glance{span.crossing->ended()};
  co_return Outcome{};
}

Poll poll_of(Span& span, size_t bytes) {
  if (!span.crossing) return {};
  return {&Crossing::poll_of, span.crossing.get(), bytes > kLong ? kYieldsForLong : kYieldsForShort};
}

}  // namespace fccl
