// How a communicator finds out why a wait may never end, and how all its ranks come to the same first failure.
#include "communicator/control.h"

#include <fmt/format.h>

#include <cstring>
#include <thread>

#include "system/log.h"

namespace fccl {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kReportAfter{5000};
constexpr milliseconds kWriterMayTake{100};

std::string describe_record(const CallRecord::Value& record) {
  return fmt::format("{} (call {})", describe(record.signature), static_cast<int64_t>(record.number - kFirstNumber));
}

double seconds(Clock::duration span) { return std::chrono::duration<double>(span).count(); }

}  // namespace

std::string Peer::describe() const { return fmt::format("rank {} (pid {} on {})", rank, pid, host_name); }

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
  FCCL_TRY(look_for_departure(wait, awaited));
  FCCL_TRY(look_at_other_lane(wait, awaited.rank));
  const Clock::duration waited = now - wait.began;
  const Peer& peer = peers_[awaited.rank];
  if (waited >= wait.timeout)
    return fail(
        raise({fcclTimeout, fmt::format("rank {} waited {:.3g} s for {} in {}; that rank's last call is {}. The deadline is "
                                        "the communicator's timeout (FCCL_TIMEOUT, fcclCommSetTimeout); look whether {} "
                                        "is stopped, still computing, or has skipped the call",
                                        rank_, seconds(waited), peer.describe(), describe(wait.task),
                                        describe_last_call_of(awaited.rank), peer.describe())}));
  if (waited >= kReportAfter && !wait.reported) {
    wait.reported = true;
    log(LogLevel::warn,
        fmt::format("rank {} has waited {:.0f} s for {} in {}; that rank's last call is {}", rank_, seconds(waited),
                    peer.describe(), describe(wait.task), describe_last_call_of(awaited.rank)));
  }
  return {};
}

Result<void> Control::look_for_departure(const Wait& wait, const Awaited& awaited) {
  const Peer& peer = peers_[awaited.rank];
  const bool left = has_left(awaited.rank);
  if (!left && peer.watch->alive()) return {};
  // It may have done its part before it went.
  if (awaited.reached()) return {};
  const char* what = left ? "has finalized or destroyed the communicator" : "died";
  return fail(
      raise({fcclRemoteError, fmt::format("{} {} while rank {} waited for it in {}; its last call was {}", peer.describe(),
                                          what, rank_, describe(wait.task), describe_last_call_of(awaited.rank))}));
}

Result<void> Control::look_at_other_lane(const Wait& wait, int rank) {
  const LaneId other = lane_of(wait.task.call.signature.collective) == kGatherLane ? kReduceLane : kGatherLane;
  for (const Box& box : segment_->board(rank, other).boxes)
    if (box.record.read().number == wait.task.number) return fail(raise_mismatch(wait.task, rank));
  return {};
}

Error Control::raise_mismatch(const Task& mine, int other) {
  const LaneId lane = lane_of(mine.call.signature.collective);
  CallRecord::Value theirs = last_call_of(other);
  for (const LaneId id : {lane, lane == kGatherLane ? kReduceLane : kGatherLane})
    for (const Box& box : segment_->board(other, id).boxes)
      if (box.record.read().number == mine.number) theirs = box.record.read();
  return raise(
      {fcclInvalidUsage,
       fmt::format("the ranks' calls differ: rank {} called {}, {} called {}{}. All ranks must issue the same calls of a "
                   "communicator in the same order with equal count, type, operator and root",
                   rank_, describe_record({mine.number, mine.call.signature, {}}), peers_[other].describe(),
                   describe_record(theirs), name_.empty() ? "" : fmt::format(", on communicator {}", name_))});
}

std::optional<Error> Control::failure() const {
  FailureBoard& board = segment_->failure();
  if (board.state.load(std::memory_order_acquire) != FailureBoard::kWritten) return std::nullopt;
  const std::string_view text(board.text.data(), strnlen(board.text.data(), board.text.size()));
  // A peer may have written anything.
  const bool known = board.code > fcclSuccess && board.code < fcclNumResults;
  return Error{known ? static_cast<fcclResult_t>(board.code) : fcclInternalError, std::string(text)};
}

Error Control::raise(Error error) {
  FailureBoard& board = segment_->failure();
  uint32_t none = FailureBoard::kNone;
  if (board.state.compare_exchange_strong(none, FailureBoard::kBeingWritten, std::memory_order_acq_rel)) {
    board.code = error.code;
    const size_t length = std::min(error.message.size(), board.text.size() - 1);
    std::memcpy(board.text.data(), error.message.data(), length);
    board.state.store(FailureBoard::kWritten, std::memory_order_release);
    log(LogLevel::info, error.message);
    return error;
  }
  // Somebody else was first; if it died while it wrote, this rank's own cause must do.
  for (const Deadline deadline = Deadline::after(kWriterMayTake); !deadline.passed(); std::this_thread::yield())
    if (auto first = failure()) return *first;
  return error;
}

void Control::look_for_deaths() {
  for (const Peer& peer : peers_)
    if (!has_failed() && !has_left(peer.rank) && !peer.watch->alive())
      (void)raise(
          {fcclRemoteError, fmt::format("{} died; its last call was {}", peer.describe(), describe_last_call_of(peer.rank))});
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
