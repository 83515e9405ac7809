// Runs a call from its turn on the lane to its count in the statistics.
#include "operations/issued_call.h"

#include <utility>
#include <variant>

#include "base/layout.h"
#include "health/control.h"
#include "hierarchical/hierarchical_lane.h"
#include "hierarchical/inter_host_call.h"
#include "hierarchical/phases.h"
#include "host/bytes_read.h"
#include "host/path.h"
#include "host/phases.h"
#include "host/put_slices.h"
#include "metrics/statistics.h"
#include "operations/lane_queue.h"
#include "wire/entries.h"
#include "wire/lane.h"

namespace fccl::core {
namespace {

constexpr std::chrono::milliseconds kLookEvery{1};

static_assert(metrics::kPaths == static_cast<size_t>(Path::across) + 5,
              "metrics name Path, whole vectors, two kinds of landing slots, and transfers");
static_assert(metrics::kSampledPaths == static_cast<size_t>(Path::mailbox) + 1);
static_assert(metrics::kLanes == kLanes + 1, "with the lane of transfers");

// Metrics show the variant `whole` as a path of its own, before the mapped path.
size_t path_in_metrics(const Route& route) {
  const auto path = static_cast<size_t>(route.path);
  return route.path < Path::mapped || route.variant == Variant::whole ? path : path + 1;
}

CallRecord::Value record_of(const CallInFull& call) { return {call.number, call.signature, {}}; }

}  // namespace

IssuedCall::IssuedCall(const CallContext& around, LaneQueue& queue, const Task& task, std::chrono::milliseconds timeout)
    : IssuedCall(around, queue, task, timeout, {queue.take_tickets(1)}) {}

IssuedCall::IssuedCall(const CallContext& around, LaneQueue& queue, const Task& task, std::chrono::milliseconds timeout,
                       Ticket ticket)
    : around_(around), queue_(queue), task_(task), wait_{task_, timeout}, ticket_(ticket) {}

Poll IssuedCall::poll() const {
  const Call& call = task_.call;
  const size_t bytes = call.uneven != nullptr ? call.input(queue_.ranks()).total() : call.signature.bytes();
  return queue_.hierarchical ? poll_of(*queue_.hierarchical, bytes) : Poll{};
}

bool IssuedCall::is_short() const {
  return task_.call.uneven == nullptr && task_.call.larger_buffer(queue_.ranks()) <= queue_.lane.box_bytes();
}

void IssuedCall::keep_blocks() {
  if (task_.call.uneven == nullptr) return;
  blocks_ = std::make_unique<const UnevenBlocks>(*task_.call.uneven);
  task_.call.uneven = blocks_.get();
}

Result<void> IssuedCall::run() {
  const Poll network = poll();
  Result<void> result = begin();
  while (result) {
    if (!phase_.resume()) {
      result = await(phase_.awaited(), {&IssuedCall::look, this, &IssuedCall::is_here}, {around_.oversubscribed, around_.nap},
                     network);
    } else if (!goes_on()) {
      result = conclude(phase_.outcome());
      break;
    }
  }
  pass_turn();
  return result;
}

Result<Advance> IssuedCall::advance() {
  if (!running_ && queue_.finished.load(std::memory_order_acquire) != ticket_.number) return Advance::none;
  Result<Advance> progress = advance_in_turn();
  if (!progress || *progress == Advance::done) pass_turn();
  return progress;
}

Result<Advance> IssuedCall::advance_in_turn() {
  if (!running_) {
    running_ = true;
    FCCL_TRY(begin());
  } else if (!is_reached()) {
    const Clock::time_point now = Clock::now();
    if (now < next_look_) return Advance::none;
    next_look_ = now + kLookEvery;
    FCCL_TRY(look(this, phase_.awaited()));
    return Advance::none;
  }
  bool ended = phase_.resume();
  while (ended && goes_on()) ended = phase_.resume();
  if (!ended) return Advance::some;
  FCCL_TRY(conclude(phase_.outcome()));
  return Advance::done;
}

bool IssuedCall::is_reached() const {
  if (phase_.awaited().reached()) return true;
  const Poll network = poll();
  if (network) network.poll(network.context);
  return network && phase_.awaited().reached();
}

// Nothing starts on a failed communicator.
Result<void> IssuedCall::begin() {
  if (around_.control.failures.has_failed())
    if (auto failed = around_.control.failures.first()) return fail(std::move(*failed));
  Lane& lane = queue_.lane;
  if (queue_.hierarchical) {
    time_from_here();
    route_ = {.path = Path::across};
    phase_ = across_hosts(lane.frame, lane, *queue_.hierarchical, task_);
  } else if (const auto route = route_without_offers(task_.call, lane.ranks(), lane.box_bytes())) {
    if (ticket_.number % metrics::kTimedOneIn == 0) time_from_here();
    start(*route);
  } else {
    start_entry();
  }
  return {};
}

void IssuedCall::time_from_here() {
  timed_ = true;
  began_ = Clock::now();
}

void IssuedCall::start(const Route& route) {
  route_ = route;
  Lane& lane = queue_.lane;
  if (route.path == Path::ring) {
    take_slots(lane, route, task_.call.signature);
    slices_before_ = lane.slices();
    all_entered_ = Clock::now();
  }
  phase_.end();
  phase_ = phase_of(route_, task_.call.signature.collective)(lane.frame, lane, route_, task_);
}

void IssuedCall::start_entry() {
  if (!timed_) time_from_here();
  phase_.end();
  phase_ = enter(queue_.lane.frame, queue_.lane, task_);
}

// If a phase has ended without completing the call, starts the next one and returns true.
bool IssuedCall::goes_on() {
  if (const auto* next = std::get_if<GoOnBy>(&phase_.outcome()))
    start(next->route);
  else if (std::holds_alternative<PastMailbox>(phase_.outcome()))
    start_entry();
  else
    return false;
  return true;
}

Result<void> IssuedCall::conclude(const Outcome& outcome) {
  if (const auto* other = std::get_if<OtherCounts>(&outcome)) return raise(around_.control.calls.other_counts(task_, *other));
  if (const auto* differs = std::get_if<Differs>(&outcome)) return raise(around_.control.calls.mismatch(task_, differs->rank));
  if (std::holds_alternative<Failed>(outcome)) return fail(around_.control.failures.first().value_or(Error{}));
  const Clock::time_point ended = timed_ ? Clock::now() : Clock::time_point{};
  note_waits(ended);
  if (task_.call.signature.issuer == Issuer::user) {
    const Signature& s = task_.call.signature;
    around_.statistics.count({.collective = s.collective,
                              .path = path_in_metrics(route_),
                              .bytes = task_.call.larger_buffer(queue_.ranks()),
                              .calls = ticket_.calls,
                              .nanoseconds = timed_ ? static_cast<uint64_t>((ended - began_).count()) : 0});
  }
  return {};
}

// Other routes say nothing of how long ranks wait for each other. A call through slots is always timed.
void IssuedCall::note_waits(Clock::time_point ended) {
  if (route_.path != Path::ring) return;
  Lane& lane = queue_.lane;
  const std::chrono::duration<double> elapsed = ended - all_entered_;
  lane.reach.waits_long = waited_long(route_, lane.ranks(), lane.slices() - slices_before_, elapsed.count());
}

void IssuedCall::count_copied(size_t beside) const {
  const Call& call = task_.call;
  const int rank = queue_.lane.rank_of(queue_.lane.rank()), ranks = queue_.ranks();
  around_.statistics.count_copied({.collective = call.signature.collective,
                                   .path = path_in_metrics(route_),
                                   .bytes = call.larger_buffer(ranks),
                                   .read = bytes_read(route_, call, rank, ranks) + beside});
}

void IssuedCall::count_staged() const {
  const int rank = queue_.lane.rank_of(queue_.lane.rank());
  count_copied(bytes_of(task_.call, rank, queue_.ranks()));
}

Result<void> IssuedCall::raise(Error error) const { return fail(around_.control.failures.raise(std::move(error))); }

// Runs after a failure, too; the lane's memory then belongs to the next operation.
void IssuedCall::pass_turn() {
  phase_.end();
  around_.control.judge.end_wait(wait_);
  queue_.finished.store(ticket_.number + 1, std::memory_order_release);
}

Result<void> IssuedCall::look(void* operation, const Awaited& awaited) {
  auto* self = static_cast<IssuedCall*>(operation);
  if (self->queue_.hierarchical && self->queue_.hierarchical->inter_host_call) return self->look_at_wire(awaited);
  return self->around_.control.judge.look(self->wait_, awaited);
}

bool IssuedCall::is_here(void* operation, const Awaited& awaited) {
  return static_cast<IssuedCall*>(operation)->queue_.lane.is_here(awaited.rank);
}

// Looks at the wire even if the call waits within the host: the wire advances on every poll and may have found a difference.
Result<void> IssuedCall::look_at_wire(const Awaited& awaited) {
  const InterHostCall& inter_host_call = *queue_.hierarchical->inter_host_call;
  if (const int differs = inter_host_call.differing_rank(); differs >= 0)
    return raise(around_.control.calls.mismatch(task_, differs, record_of(inter_host_call.call_of(differs))));
  FCCL_TRY(look_at_other_lanes());
  if (awaited.rank != InterHostCall::kWire) return around_.control.judge.look(wait_, awaited);
  const int rank = inter_host_call.awaited_rank();
  return around_.control.judge.look(wait_, {awaited.where, awaited.target, rank}, inter_host_call.lane().failure_of(rank));
}

// Detects that a rank on another host used this call number on the other lane.
Result<void> IssuedCall::look_at_other_lanes() const {
  for (const LaneQueue& other : around_.lanes) {
    if (&other == &queue_) continue;
    const InterHostCall& others_call = *other.hierarchical->inter_host_call;
    const WireLane& lane = others_call.lane();
    for (int i = 1; i < lane.members(); ++i)
      if (const auto theirs = others_call.entries().call_numbered(task_.number, lane.peer(i)))
        return raise(around_.control.calls.mismatch(task_, lane.rank_of(lane.peer(i)), record_of(*theirs)));
  }
  return {};
}

}  // namespace fccl::core
