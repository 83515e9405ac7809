// Reads the calls that ranks have recorded, and describes calls that differ.
#include "health/known_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "health/call_numbers.h"
#include "health/peers.h"
#include "host/outcome.h"
#include "host/task.h"
#include "segment/rank_state.h"

namespace fccl::core {
namespace {

std::string describe_record(const CallRecord::Value& record) {
  return fmt::format("{} (call {})", describe(record.signature), std::max(record.number, kFirstNumber) - kFirstNumber);
}

}  // namespace

void KnownCalls::say_issued(uint64_t number) { peers_.own_state().issued.store(number, std::memory_order_relaxed); }

void KnownCalls::say_begun(LaneId lane, uint64_t number) {
  peers_.own_state().begun[lane].store(number, std::memory_order_relaxed);
}

std::string KnownCalls::with_name(std::string call) const {
  return name_.empty() ? call : fmt::format("{} of communicator {}", call, name_);
}

std::string KnownCalls::on_communicator() const { return name_.empty() ? "" : fmt::format(", on communicator {}", name_); }

std::string KnownCalls::describe(const Task& task) const {
  return with_name(describe_record({task.number, task.call.signature, {}}));
}

std::string KnownCalls::describe(const TransferEnd& transfer) const { return with_name(fccl::core::describe(transfer)); }

CallRecord::Value KnownCalls::last_call_of(int rank) const {
  CallRecord::Value last;
  for (const LaneId lane : lanes_from(kGatherLane))
    for (const Box& box : peers_.board_of(rank, lane).boxes)
      if (const auto value = box.record.read(); value.number > last.number) last = value;
  return last;
}

std::string KnownCalls::describe_last_call_of(int rank) const {
  const std::optional<CallInFull> last = last_known_of(rank);
  if (!last) return peers_.is_here(rank) ? "none" : "not known on this host";
  return describe_record({last->number, last->signature, {}});
}

std::optional<CallInFull> KnownCalls::last_known_of(int rank) const {
  if (peers_.is_here(rank)) {
    const CallRecord::Value last = last_call_of(rank);
    return last.number < kEarliestNumber ? std::nullopt : std::optional(CallInFull{last.number, last.signature});
  }
  const std::lock_guard lock(mutex_);
  const auto heard = heard_.find(rank);
  return heard == heard_.end() ? std::nullopt : std::optional(heard->second);
}

void KnownCalls::hear_of_last_call(int rank, const CallInFull& call) {
  const std::lock_guard lock(mutex_);
  heard_[rank] = call;
}

std::string KnownCalls::describe_way_to(const Task& task, int rank) const {
  const uint64_t issued = peers_.is_here(rank) ? peers_.state_of(rank).issued.load(std::memory_order_relaxed) : 0;
  if (issued == 0) return "";
  if (issued < task.number) return ", and it has not issued this one";
  const LaneId lane = lane_of(task.call.signature.collective);
  if (peers_.state_of(rank).begun[lane].load(std::memory_order_relaxed) < task.number)
    return ", and it has issued this one, but its CUDA stream has not come to it";
  return ", and it is at work on this one";
}

bool KnownCalls::is_on_another_lane(const Task& mine, int rank) const {
  const auto lanes = lanes_from(lane_of(mine.call.signature.collective));
  for (const LaneId other : lanes | std::views::drop(1))
    for (const Box& box : peers_.board_of(rank, other).boxes)
      if (box.record.read().number == mine.number) return true;
  return false;
}

Error KnownCalls::mismatch(const Task& mine, int other, const CallRecord::Value& told) const {
  const bool is_here = peers_.is_here(other);
  CallRecord::Value theirs = is_here ? last_call_of(other) : told;
  for (const LaneId id : lanes_from(lane_of(mine.call.signature.collective)))
    if (is_here)
      for (const Box& box : peers_.board_of(other, id).boxes)
        if (box.record.read().number == mine.number) theirs = box.record.read();
  return {MessageKind::calls_differ,
          fmt::format("the ranks' calls differ: rank {} called {}, {} called {}{}. All ranks must issue the same calls of a "
                      "communicator in the same order with equal count, type, operator and root",
                      peers_.rank(), describe_record({mine.number, mine.call.signature, {}}), peers_.describe(other),
                      describe_record(theirs), on_communicator())};
}

// If both directions differ, the error shows the one to this rank.
Error KnownCalls::other_counts(const Task& mine, const OtherCounts& theirs) const {
  const int other = theirs.rank, ranks = peers_.count();
  const size_t element = size_of(mine.call.signature.dtype);
  const size_t sent = mine.call.input(ranks).bytes(other), expected = mine.call.output(ranks).bytes(other);
  const bool comes_here = theirs.sends != expected;
  const int from = comes_here ? other : peers_.rank(), to = comes_here ? peers_.rank() : other;
  return {MessageKind::counts_differ,
          fmt::format("the ranks' counts differ in {}: {} sends {} elements to {}, which expects {}. "
                      "sendcounts[{}] on rank {} and recvcounts[{}] on rank {} must be equal",
                      describe(mine), peers_.describe(from), (comes_here ? theirs.sends : sent) / element, peers_.describe(to),
                      (comes_here ? expected : theirs.expects) / element, to, from, from, to)};
}

Error KnownCalls::difference(const TransferEnd& mine, int source, const Envelope& theirs) const {
  const TransferEnd sent{.direction = Direction::send, .peer = peers_.rank(), .envelope = theirs};
  return {MessageKind::transfers_differ,
          fmt::format("a send and its receive differ: {} called {}, {} called {}{}. The two must have equal count and type, "
                      "and a receive takes the oldest send of its source and tag",
                      peers_.describe(source), fccl::core::describe(sent), peers_.describe(peers_.rank()),
                      fccl::core::describe(mine), on_communicator())};
}

}  // namespace fccl::core
