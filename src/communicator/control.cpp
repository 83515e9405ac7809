// How a communicator finds out why a wait may never end, and how all its ranks come to the same first failure.
#include "communicator/control.h"

#include <fmt/format.h>

#include <cstring>

#include "system/log.h"

namespace fccl {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kReportAfter{5000};
constexpr milliseconds kAskEvery{20};

std::string describe_record(const CallRecord::Value& record) {
  return fmt::format("{} (call {})", describe(record.signature), static_cast<int64_t>(record.number - kFirstNumber));
}

LaneId other_lane(LaneId lane) { return lane == kGatherLane ? kReduceLane : kGatherLane; }

const char* setting_of_deadline(const Signature& signature) {
  const bool in_init = signature.internal && signature.collective == fcclCollBarrier;
  return in_init ? "that of init (FCCL_INIT_TIMEOUT, initTimeoutMs)"
                 : "the communicator's timeout (FCCL_TIMEOUT, timeoutMs, fcclCommSetTimeout)";
}

double seconds(Clock::duration span) { return std::chrono::duration<double>(span).count(); }

}  // namespace

std::string Control::describe(const Task& task) const {
  const std::string call = describe_record({task.number, task.call.signature, {}});
  return name_.empty() ? call : fmt::format("{} of communicator {}", call, name_);
}

Result<void> Control::look(Wait& wait, const Awaited& awaited) {
  if (auto failed = failure()) return fail(std::move(*failed));
  const Clock::time_point now = Clock::now();
  // The deadline is one wait's, not the whole call's.
  if (wait.awaited != awaited) {
    wait.awaited = awaited;
    wait.began = now;
    wait.reported = false;
  }
  segment_->state(rank_).set_waiting(lane_of(wait.task.call.signature.collective), {to_ms(now), awaited.rank});
  if (still_wanted_ && now >= next_ask_) {
    next_ask_ = now + kAskEvery;
    if (auto wanted = still_wanted_(); !wanted) return fail(raise(std::move(wanted).error()));
  }
  FCCL_TRY(look_for_departure(wait, awaited));
  FCCL_TRY(look_at_other_lane(wait, awaited.rank));
  const Clock::duration waited = now - wait.began;
  // A rank that was stopped itself may find its deadline passed and what it waited for done.
  if (waited >= wait.timeout && !awaited.reached())
    return fail(raise({fcclTimeout, fmt::format("{}. The deadline is {}; look whether that rank is stopped, still computing, "
                                                "or has skipped the call",
                                                describe(wait, waited), setting_of_deadline(wait.task.call.signature))}));
  if (waited >= kReportAfter && !wait.reported) {
    wait.reported = true;
    log(LogLevel::warn, describe(wait, waited));
  }
  return {};
}

std::string Control::describe(const Wait& wait, Clock::duration waited) const {
  const int last = last_in_line(wait, wait.awaited.rank);
  const std::string via = last == wait.awaited.rank ? "" : ", which waits for " + describe_rank(last);
  return fmt::format("rank {} has waited {:.3g} s for {}{} in {}; the last call of rank {} is {}", rank_, seconds(waited),
                     describe_rank(wait.awaited.rank), via, describe(wait.task), last, describe_last_call_of(last));
}

// The rank at the end of the line: this rank waits for `rank`, which may wait for another one in turn, which may be stopped.
// Who waits says so every millisecond; who has not for half the time that this rank has waited does something else.
int Control::last_in_line(const Wait& wait, int rank) const {
  const Clock::time_point now = Clock::now();
  const uint64_t fresh = to_ms(now - (now - wait.began) / 2);
  const LaneId lane = lane_of(wait.task.call.signature.collective);
  int last = rank;
  for (size_t steps = 0; steps < peers_.size(); ++steps) {
    const RankState& state = segment_->state(last);
    Waiting waiting = state.get_waiting(lane);
    if (waiting.at_ms < fresh) waiting = state.get_waiting(other_lane(lane));
    if (waiting.at_ms < fresh || std::cmp_greater_equal(waiting.rank, peers_.size())) return last;
    last = waiting.rank;
  }
  // They wait for each other.
  return rank;
}

Result<void> Control::look_for_departure(const Wait& wait, const Awaited& awaited) {
  const Peer& peer = peers_[awaited.rank];
  // In this order: it may leave and exit in between.
  const bool alive = peer.watch->alive();
  const bool left = has_left(awaited.rank);
  if (alive && !left) return {};
  // It may have done its part before it went.
  if (awaited.reached()) return {};
  const char* what = left ? "has finalized or destroyed the communicator" : "died";
  return fail(raise({fcclRemoteError,
                     fmt::format("{} {} while rank {} waited for it in {}; its last call was {}", describe_rank(awaited.rank),
                                 what, rank_, describe(wait.task), describe_last_call_of(awaited.rank))}));
}

Result<void> Control::look_at_other_lane(const Wait& wait, int rank) {
  const LaneId other = other_lane(lane_of(wait.task.call.signature.collective));
  for (const Box& box : segment_->board(rank, other).boxes)
    if (box.record.read().number == wait.task.number) return fail(raise_mismatch(wait.task, rank));
  return {};
}

Error Control::raise_mismatch(const Task& mine, int other) {
  const LaneId lane = lane_of(mine.call.signature.collective);
  CallRecord::Value theirs = last_call_of(other);
  for (const LaneId id : {lane, other_lane(lane)})
    for (const Box& box : segment_->board(other, id).boxes)
      if (box.record.read().number == mine.number) theirs = box.record.read();
  return raise(
      {fcclInvalidUsage,
       fmt::format("the ranks' calls differ: rank {} called {}, {} called {}{}. All ranks must issue the same calls of a "
                   "communicator in the same order with equal count, type, operator and root",
                   rank_, describe_record({mine.number, mine.call.signature, {}}), describe_rank(other),
                   describe_record(theirs), name_.empty() ? "" : fmt::format(", on communicator {}", name_))});
}

std::optional<Error> Control::failure() const {
  const uint32_t first = segment_->failure().first.load(std::memory_order_acquire);
  if (first == 0 || first > peers_.size()) return std::nullopt;
  const Cause& cause = segment_->state(static_cast<int>(first - 1)).cause;
  const std::string_view text(cause.text.data(), strnlen(cause.text.data(), cause.text.size()));
  // A peer may have written anything.
  const bool known = cause.code > fcclSuccess && cause.code < fcclNumResults;
  return Error{known ? static_cast<fcclResult_t>(cause.code) : fcclInternalError, std::string(text)};
}

Error Control::raise(Error error) {
  const std::lock_guard lock(mutex_);
  if (auto first = failure()) return *first;
  Cause& cause = segment_->state(rank_).cause;
  cause.code = error.code;
  std::memcpy(cause.text.data(), error.message.data(), std::min(error.message.size(), cause.text.size() - 1));
  uint32_t none = 0;
  if (segment_->failure().first.compare_exchange_strong(none, static_cast<uint32_t>(rank_) + 1, std::memory_order_acq_rel))
    log(LogLevel::info, error.message);
  return failure().value_or(std::move(error));
}

void Control::look_for_deaths() {
  for (int rank = 0; std::cmp_less(rank, peers_.size()); ++rank)
    // In this order: it may leave and exit in between.
    if (!has_failed() && !peers_[rank].watch->alive() && !has_left(rank))
      (void)raise(
          {fcclRemoteError, fmt::format("{} died; its last call was {}", describe_rank(rank), describe_last_call_of(rank))});
}

CallRecord::Value Control::last_call_of(int rank) const {
  CallRecord::Value last;
  for (const LaneId lane : {kGatherLane, kReduceLane})
    for (const Box& box : segment_->board(rank, lane).boxes)
      if (const auto value = box.record.read(); value.number > last.number) last = value;
  return last;
}

std::string Control::describe_last_call_of(int rank) const {
  const CallRecord::Value last = last_call_of(rank);
  return last.number < kFirstNumber ? "none" : describe_record(last);
}

const char* Control::failure_text() {
  const std::lock_guard lock(mutex_);
  if (!text_)
    if (auto failed = failure()) text_ = failed->message;
  return text_ ? text_->c_str() : "";
}

}  // namespace fccl
