// Finds out why a wait may never end, and brings all ranks to the same first failure.
#include "operations/control.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ranges>
#include <utility>

#include "operations/statistics.h"
#include "system/failure_timing.h"
#include "system/log.h"

namespace fccl::core {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kReportAfter{5000};
// A wait that has lasted this long, or half its timeout, is reported to the other hosts, whose ranks may wait for this one.
constexpr milliseconds kAnnounceAfter{2000};

std::string describe_record(const CallRecord::Value& record) {
  return fmt::format("{} (call {})", describe(record.signature), std::max(record.number, kFirstNumber) - kFirstNumber);
}

const char* setting_of_deadline(const Wait& wait) {
  return wait.task != nullptr && wait.task->call.signature.issuer == Issuer::init
             ? "that of init (FCCL_INIT_TIMEOUT, initTimeoutMs)"
             : "the communicator's timeout (FCCL_TIMEOUT, timeoutMs, fcclCommSetTimeout)";
}

LaneId lane_of(const Wait& wait) {
  return wait.task == nullptr ? kTransferLane : fccl::core::lane_of(wait.task->call.signature.collective);
}

double seconds(Clock::duration span) { return std::chrono::duration<double>(span).count(); }

}  // namespace

bool is_reached(const Wait& wait, const Awaited& awaited) {
  if (wait.catch_up) wait.catch_up.poll(wait.catch_up.context);
  return awaited.reached();
}

std::string Control::describe(const Task& task) const {
  const std::string call = describe_record({task.number, task.call.signature, {}});
  return name_.empty() ? call : fmt::format("{} of communicator {}", call, name_);
}

std::string Control::describe_call(const Wait& wait) const {
  if (wait.task != nullptr) return describe(*wait.task);
  const std::string call = fccl::core::describe(*wait.transfer);
  return name_.empty() ? call : fmt::format("{} of communicator {}", call, name_);
}

Result<void> Control::look(Wait& wait, const Awaited& awaited, const std::optional<Error>& network) {
  if (auto failed = failure()) return fail(std::move(*failed));
  const Clock::time_point now = Clock::now();
  // The deadline is that of one wait, not of the whole call. The peer that the network waits for may change in between.
  if (wait.awaited.where != awaited.where || wait.awaited.target != awaited.target) {
    announce_wait(wait, kNobody);
    wait.began = now;
    wait.broken = {};
    wait.reported = false;
    wait.looked = now;
    wait.dead.reset();
  }
  wait.awaited = awaited;
  show(wait, now);
  segment_->state(local()).set_waiting(lane_of(wait), {to_ms(now), awaited.rank});
  if (cancel_check_ && now >= next_ask_) {
    next_ask_ = now + kLookInterval;
    if (auto wanted = cancel_check_(); !wanted) return fail(raise(std::move(wanted).error()));
  }
  if (awaited.rank < 0) {
    FCCL_TRY(look_for_any(wait, awaited));
  } else if (is_here(awaited.rank)) {
    FCCL_TRY(look_for_departure(wait, awaited));
    FCCL_TRY(look_at_other_lanes(wait, awaited.rank));
  } else {
    FCCL_TRY(look_at_remote_rank(wait, awaited, network));
  }
  FCCL_TRY(look_for_other_deaths(wait, now));
  const Clock::duration waited = now - wait.began;
  if (waited >= std::min(kAnnounceAfter, wait.timeout / 2)) announce_wait(wait, awaited.rank);
  // A rank that was stopped itself may find its deadline passed, but what it awaited done.
  if (waited >= wait.timeout && waited >= wait.timeout + report_steps(end_of_wait_chain(wait, awaited.rank)) * kReportStep &&
      !is_reached(wait, awaited))
    return fail(raise({fcclTimeout, fmt::format("{}. The deadline is {}; look whether that rank is stopped, still computing, "
                                                "or has skipped the call",
                                                describe(wait, waited), setting_of_deadline(wait))}));
  if (waited >= kReportAfter && !wait.reported && wait.warns) {
    wait.reported = true;
    log(LogLevel::warn, describe(wait, waited));
  }
  return {};
}

// The time is added from look to look, so a wait that ends within a millisecond costs nothing.
void Control::show(Wait& wait, Clock::time_point now) {
  const auto span = now - std::exchange(wait.looked, now);
  if (statistics_ == nullptr || (wait.task != nullptr && wait.task->call.signature.issuer == Issuer::init)) return;
  if (wait.shown_since == Clock::time_point{}) wait.shown_since = now;
  const bool is_call = wait.task != nullptr;
  statistics_->show_wait(lane_of(wait),
                         {.collective = is_call ? wait.task->call.signature.collective : wait.transfer->counted_as(),
                          .bytes = is_call ? wait.task->call.signature.bytes() : wait.transfer->envelope.bytes(),
                          .since = wait.shown_since,
                          .awaited = wait.awaited.rank},
                         span);
}

// Tells the other hosts when a wait has become long, and when it is over.
void Control::announce_wait(Wait& wait, int awaited) {
  if (wait.is_told == (awaited != kNobody)) return;
  wait.is_told = awaited != kNobody;
  segment_->state(local()).waits_long[lane_of(wait)].store(awaited, std::memory_order_relaxed);
  tell_leader();
}

void Control::end_wait(Wait& wait) {
  announce_wait(wait, kNobody);
  if (wait.shown_since != Clock::time_point{}) statistics_->end_wait(lane_of(wait));
  wait.shown_since = {};
}

// Returns how many report steps to wait before blaming `rank`: 0 on our own host, 1 for another host's leader, 2 for any other
// rank there, whose leader reports first.
int Control::report_steps(int rank) const {
  if (rank < 0 || is_here(rank)) return 0;
  return leader_of(rank) == rank ? 1 : 2;
}

std::string Control::describe(const Wait& wait, Clock::duration waited) const {
  if (wait.awaited.rank < 0)
    return fmt::format("rank {} has waited {:.3g} s for any rank in {}", rank_, seconds(waited), describe_call(wait));
  const int last = end_of_wait_chain(wait, wait.awaited.rank);
  const std::string via = last == wait.awaited.rank ? "" : ", which waits for " + describe_rank(last);
  std::string known = fmt::format("the last call of rank {} is {}{}", last, describe_last_call_of(last),
                                  wait.task != nullptr ? describe_way_to(*wait.task, last) : "");
  if (!is_here(last) && status_of(last) == PeerStatus::unheard)
    known = fmt::format("nothing has been heard of rank {} since {}, through whom it was heard of, has left", last,
                        describe_rank(reporter_of(last, PeerStatus::left)));
  return fmt::format("rank {} has waited {:.3g} s for {}{} in {}; {}", rank_, seconds(waited), describe_rank(wait.awaited.rank),
                     via, describe_call(wait), known);
}

// Describes how far a rank of this host is with a call on GPU memory; it may have issued the call long before its GPU reaches
// it.
std::string Control::describe_way_to(const Task& task, int rank) const {
  const uint64_t issued = is_here(rank) ? state_of(rank).issued.load(std::memory_order_relaxed) : 0;
  if (issued == 0) return "";
  if (issued < task.number) return ", and it has not issued this one";
  const LaneId lane = lane_of(task.call.signature.collective);
  if (state_of(rank).begun[lane].load(std::memory_order_relaxed) < task.number)
    return ", and it has issued this one, but its CUDA stream has not come to it";
  return ", and it is at work on this one";
}

// Returns the rank that `rank` waits for in turn; a wait for any rank ends the line. A rank of this host publishes its wait
// every millisecond; if it has not for half the time that this rank has waited, it is not waiting. For a rank of another host
// its leader has reported.
int Control::awaited_by(const Wait& wait, int rank) const {
  if (rank < 0) return kNobody;
  if (!is_here(rank)) return segment_->awaited_beyond(rank).load(std::memory_order_relaxed);
  const Clock::time_point now = Clock::now();
  const uint64_t fresh = to_ms(now - (now - wait.began) / 2);
  Waiting waiting;
  for (int place = 0; place <= kLanes; ++place)
    if (waiting.at_ms < fresh)
      waiting = state_of(rank).get_waiting(static_cast<LaneId>((lane_of(wait) + place) % (kLanes + 1)));
  return waiting.at_ms < fresh || std::cmp_greater_equal(waiting.rank, peers_.size()) ? kNobody : waiting.rank;
}

// Returns the rank at the end of the chain of waits: this rank waits for `rank`, which may wait for another one, which may be
// stopped.
int Control::end_of_wait_chain(const Wait& wait, int rank) const {
  int last = rank;
  for (size_t steps = 0; steps < peers_.size(); ++steps) {
    const int next = awaited_by(wait, last);
    if (next < 0 || std::cmp_greater_equal(next, peers_.size())) return last;
    last = next;
  }
  // The ranks of the chain wait for each other.
  return rank;
}

Result<void> Control::look_for_departure(const Wait& wait, const Awaited& awaited) {
  const Peer& peer = peers_[awaited.rank];
  // The order matters: the rank may leave and exit in between.
  const bool alive = peer.watch->alive();
  const bool left = has_left(awaited.rank);
  if (alive && !left) return {};
  // The rank may have done its part before it left.
  if (is_reached(wait, awaited)) return {};
  const char* what = left ? "has finalized or destroyed the communicator" : "died";
  return fail(raise({fcclRemoteError,
                     fmt::format("{} {} while rank {} waited for it in {}; its last call was {}", describe_rank(awaited.rank),
                                 what, rank_, describe_call(wait), describe_last_call_of(awaited.rank))}));
}

// Any rank may still send, unless one has died, which ends every call sooner or later, or all others have left.
Result<void> Control::look_for_any(const Wait& wait, const Awaited& awaited) {
  bool all_left = peers_.size() > 1;
  for (int rank = 0; std::cmp_less(rank, peers_.size()); ++rank) {
    if (rank == rank_) continue;
    const bool died = has_died(rank);
    all_left = all_left && has_left(rank);
    if (died && !is_reached(wait, awaited))
      return fail(raise({fcclRemoteError, fmt::format("{} died while rank {} waited for any rank in {}", describe_rank(rank),
                                                      rank_, describe_call(wait))}));
  }
  if (!all_left || is_reached(wait, awaited)) return {};
  return fail(
      raise({fcclRemoteError,
             fmt::format("all other ranks have finalized or destroyed the communicator while rank {} waited for any rank "
                         "in {}",
                         rank_, describe_call(wait))}));
}

// Judges a wait for a rank of another host by the reports of that host and of the network.
Result<void> Control::look_at_remote_rank(Wait& wait, const Awaited& awaited, const std::optional<Error>& network) {
  const PeerStatus status = status_of(awaited.rank);
  const bool may_come = status == PeerStatus::present || status == PeerStatus::unheard;
  if (may_come && !network) return {};
  const Clock::time_point now = Clock::now();
  if (wait.broken == Clock::time_point{}) wait.broken = now;
  if (now - wait.broken < kArrivalDelay || is_reached(wait, awaited)) return {};
  const std::string where = fmt::format("while rank {} waited for it in {}", rank_, describe_call(wait));
  const std::string who = describe_rank(awaited.rank);
  switch (status) {
    case PeerStatus::left:
      return fail(raise({fcclRemoteError, fmt::format("{} has finalized or destroyed the communicator {}", who, where)}));
    case PeerStatus::died:
      return fail(raise({fcclRemoteError, fmt::format("{} died {}", who, where)}));
    case PeerStatus::out_of_reach:
      return fail(
          raise({fcclRemoteError, fmt::format("{} died, through whom {} was heard of, {}",
                                              describe_rank(reporter_of(awaited.rank, PeerStatus::died)), who, where)}));
    case PeerStatus::present:
    case PeerStatus::unheard:
      break;
  }
  return fail(raise({fcclRemoteError, fmt::format("the network to {} failed {}: {}", who, where, network->message)}));
}

// Returns the rank whose death or departure ended the reports on a rank of another host: the first rank of its host, or rank 0,
// which relays between hosts.
int Control::reporter_of(int rank, PeerStatus of_speaker) const {
  const int leader = leader_of(rank);
  return status_of(leader) == of_speaker ? leader : 0;
}

// Returns the first rank of a rank's host.
int Control::leader_of(int rank) const {
  int first = 0;
  while (!share_a_host(first, rank)) ++first;
  return first;
}

Result<void> Control::look_at_other_lanes(const Wait& wait, int rank) {
  if (wait.task == nullptr) return {};
  const auto lanes = lanes_from(lane_of(wait));
  for (const LaneId other : lanes | std::views::drop(1))
    for (const Box& box : board_of(rank, other).boxes)
      if (box.record.read().number == wait.task->number) return fail(raise_mismatch(*wait.task, rank));
  return {};
}

Error Control::raise_mismatch(const Task& mine, int other, const CallRecord::Value& told) {
  const LaneId lane = lane_of(mine.call.signature.collective);
  CallRecord::Value theirs = is_here(other) ? last_call_of(other) : told;
  for (const LaneId id : lanes_from(lane))
    if (is_here(other))
      for (const Box& box : board_of(other, id).boxes)
        if (box.record.read().number == mine.number) theirs = box.record.read();
  return raise(
      {fcclInvalidUsage,
       fmt::format("the ranks' calls differ: rank {} called {}, {} called {}{}. All ranks must issue the same calls of a "
                   "communicator in the same order with equal count, type, operator and root",
                   rank_, describe_record({mine.number, mine.call.signature, {}}), describe_rank(other),
                   describe_record(theirs), name_.empty() ? "" : fmt::format(", on communicator {}", name_))});
}

// If both directions differ, the error shows the one to this rank.
Error Control::raise_other_counts(const Task& mine, const OtherCounts& theirs) {
  const int other = theirs.rank, ranks = static_cast<int>(peers_.size());
  const size_t element = size_of(mine.call.signature.dtype);
  const size_t sent = mine.call.input(ranks).bytes(other), expected = mine.call.output(ranks).bytes(other);
  const bool comes_here = theirs.sends != expected;
  const int from = comes_here ? other : rank_, to = comes_here ? rank_ : other;
  return raise({fcclInvalidUsage,
                fmt::format("the ranks' counts differ in {}: {} sends {} elements to {}, which expects {}. "
                            "sendcounts[{}] on rank {} and recvcounts[{}] on rank {} must be equal",
                            describe(mine), describe_rank(from), (comes_here ? theirs.sends : sent) / element,
                            describe_rank(to), (comes_here ? expected : theirs.expects) / element, to, from, from, to)});
}

Error Control::raise_difference(const TransferEnd& mine, int source, const Envelope& theirs) {
  const TransferEnd sent{.direction = Direction::send, .peer = rank_, .envelope = theirs};
  return raise(
      {fcclInvalidUsage,
       fmt::format("a send and its receive differ: {} called {}, {} called {}{}. The two must have equal count and type, "
                   "and a receive takes the oldest send of its source and tag",
                   describe_rank(source), fccl::core::describe(sent), describe_rank(rank_), fccl::core::describe(mine),
                   name_.empty() ? "" : fmt::format(", on communicator {}", name_))});
}

std::optional<Error> Control::failure() const {
  const uint32_t first = segment_->failure().first.load(std::memory_order_acquire);
  if (first == 0 || first > locals_.size()) return std::nullopt;
  const Cause& cause = segment_->state(static_cast<int>(first - 1)).cause;
  const std::string_view text(cause.text.data(), strnlen(cause.text.data(), cause.text.size()));
  // A peer may have written anything, so its code is checked.
  const bool known = cause.code > fcclSuccess && cause.code < fcclNumResults;
  return Error{known ? static_cast<fcclResult_t>(cause.code) : fcclInternalError, std::string(text)};
}

Error Control::raise(Error error) {
  if (offer(error)) {
    tell_leader();
    // The log comes last, since it may block if it is not read.
    log(LogLevel::info, error.message);
  }
  return failure().value_or(std::move(error));
}

// A failure heard from other hosts came by the leader, so it is not told again.
void Control::hear_of_failure(const Error& error) {
  if (offer(error)) log(LogLevel::info, error.message);
}

// Returns true if `error` has become the first failure.
bool Control::offer(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (failure()) return false;
  Cause& cause = segment_->state(local()).cause;
  cause.code = error.code;
  std::memcpy(cause.text.data(), error.message.data(), std::min(error.message.size(), cause.text.size() - 1));
  uint32_t none = 0;
  return segment_->failure().first.compare_exchange_strong(none, static_cast<uint32_t>(local()) + 1, std::memory_order_acq_rel);
}

void Control::tell_leader() const {
  const uint64_t once = 1;
  if (wake_) (void)!::write(wake_.get(), &once, sizeof once);
}

CallRecord::Value Control::last_call_of(int rank) const {
  CallRecord::Value last;
  for (const LaneId lane : lanes_from(kGatherLane))
    for (const Box& box : board_of(rank, lane).boxes)
      if (const auto value = box.record.read(); value.number > last.number) last = value;
  return last;
}

std::string Control::describe_last_call_of(int rank) const {
  if (!is_here(rank)) return "not known on this host";
  const CallRecord::Value last = last_call_of(rank);
  return last.number < kEarliestNumber ? "none" : describe_record(last);
}

const char* Control::failure_text() {
  const std::lock_guard lock(mutex_);
  if (!text_)
    if (auto failed = failure()) text_ = failed->message;
  return text_ ? text_->c_str() : "";
}

}  // namespace fccl::core
