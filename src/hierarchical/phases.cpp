// Runs the loop of a call between hosts: rounds within the host, while data moves between hosts.
#include "hierarchical/phases.h"

#include "hierarchical/counts_exchange.h"
#include "hierarchical/inter_host_call.h"
#include "hierarchical/pair_blocks.h"
#include "hierarchical/relay.h"
#include "host/lane.h"
#include "plan/choose.h"

namespace fccl::core {
namespace {

// A wait for a long message leaves the core to the kernel, which moves the message; a wait for a short message keeps the core,
// to be there when it arrives.
constexpr size_t kLong = size_t{64} << 10;
constexpr std::chrono::microseconds kYieldsForLong{50};
constexpr std::chrono::microseconds kYieldsForShort{1000};

// Returns the call that exchanges the counts of another one.
Task counts_of(HierarchicalLane& hierarchical, const Task& task) {
  if (!hierarchical.counts_exchange)
    hierarchical.counts_exchange = std::make_unique<CountsExchange>(hierarchical.columns.ranks());
  return {hierarchical.counts_exchange->begin(task.call), task.number};
}

// Places the blocks of pairs, and returns the bytes of the longest one between any two ranks; returns 0 for other calls.
size_t prepare_pairs(HierarchicalLane& hierarchical, const Call& call, bool counts_are_known) {
  if (!call.signature.row().has_pairs()) return 0;
  if (!hierarchical.pair_blocks) hierarchical.pair_blocks = std::make_unique<PairBlocks>(hierarchical.columns);
  const Layout input = call.input(hierarchical.columns.ranks());
  if (!counts_are_known) hierarchical.pair_blocks->set_all(input.most());
  hierarchical.pair_blocks->place_in_buffers(input, call.output(hierarchical.columns.ranks()));
  return counts_are_known ? hierarchical.counts_exchange->longest() : input.most();
}

}  // namespace

bool goes_between_hosts(fcclColl_t collective) { return plan::has_algorithm(even_form(collective)); }

// A call whose counts are private to each rank must exchange them before it can be cut into slices, so it runs twice, first for
// the counts.
Phase across_hosts([[maybe_unused]] FrameMemory& frame, Lane& lane, HierarchicalLane& hierarchical, Task task) {
  const bool tells = task.call.signature.row().has_private_counts();
  for (bool is_told = false;; is_told = true) {
    const Task part = tells && !is_told ? counts_of(hierarchical, task) : task;
    lane.enter(part.call, part.number, nullptr, 0);
    IntraHostRelay relay(lane, hierarchical, part, prepare_pairs(hierarchical, part.call, is_told));
    bool goes_on = relay.next();
    // The first round up need not wait for the others' entries: no rank takes its data before it has seen that the calls agree.
    bool is_put = goes_on && relay.begins_up();
    if (is_put) relay.put();
    for (int i = 1; i < lane.ranks(); ++i) {
      co_await Glance{lane.entered(lane.peer(i))};
      if (!lane.agrees(lane.peer(i))) co_return Differs{lane.rank_of(lane.peer(i))};
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
    if (!tells || is_told) co_return Done{};
    relay.keep_counts();
    if (const auto other = hierarchical.counts_exchange->compare(task.call)) co_return *other;
  }
}

Poll poll_of(HierarchicalLane& hierarchical, size_t bytes) {
  if (!hierarchical.inter_host_call) return {};
  return {&InterHostCall::poll_of, hierarchical.inter_host_call.get(), bytes > kLong ? kYieldsForLong : kYieldsForShort};
}

}  // namespace fccl::core
