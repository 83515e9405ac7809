// The loop of a call between hosts: rounds within the host, beside what goes between hosts.
#include "hierarchical/phases.h"

#include "hierarchical/relay.h"

namespace fccl {
namespace {

// Who waits for a long message had better leave the core to the kernel, which moves it; who waits for a short one, be there.
constexpr size_t kLong = size_t{64} << 10;
constexpr std::chrono::microseconds kYieldsForLong{50};
constexpr std::chrono::microseconds kYieldsForShort{1000};

}  // namespace

Phase across_hosts([[maybe_unused]] FrameMemory& frame, Lane& lane, HierarchicalLane& hierarchical, Task task) {
  lane.enter(task.call, task.number, nullptr, 0);
  IntraHostRelay relay(lane, hierarchical, task);
  bool goes_on = relay.next();
  // What goes up first need not wait for the others' entries: nobody takes it before it has seen that the calls agree.
  bool is_put = goes_on && relay.begins_up();
  if (is_put) relay.put();
  for (int i = 1; i < lane.ranks(); ++i) {
    co_await Glance{lane.entered(lane.peer(i))};
    if (!lane.agrees(lane.peer(i))) co_return Outcome{lane.rank_of(lane.peer(i))};
  }
  relay.begin();
  while (goes_on) {
    if (!is_put) {
      co_await Glance{relay.may_put()};
      relay.put();
    }
    is_put = false;
    for (int i = 1; i < lane.ranks(); ++i) {
      co_await Glance{lane.published(lane.peer(i), relay.number() + 1)};
      relay.take(lane.peer(i));
    }
    relay.finish();
    goes_on = relay.next();
  }
  if (hierarchical.inter_host_call) co_await Glance{hierarchical.inter_host_call->ended()};
  co_return Outcome{};
}

Poll poll_of(HierarchicalLane& hierarchical, size_t bytes) {
  if (!hierarchical.inter_host_call) return {};
  return {&InterHostCall::poll_of, hierarchical.inter_host_call.get(), bytes > kLong ? kYieldsForLong : kYieldsForShort};
}

}  // namespace fccl
