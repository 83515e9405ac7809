// Finds out why a wait may never end.
#include "health/wait_judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "health/failure_board.h"
#include "health/known_calls.h"
#include "health/liveness.h"
#include "health/peers.h"
#include "health/wait.h"
#include "host/task.h"
#include "host_link/link_messages.h"
#include "metrics/statistics.h"
#include "os/log.h"
#include "segment/rank_state.h"
#include "waiting/failure_timing.h"

namespace fccl::core {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kReportAfter{5000};
// A wait that has lasted this long, or half its timeout, is reported to the other hosts, whose ranks may wait for this one.
constexpr milliseconds kAnnounceAfter{2000};
// A wait that has lasted this long searches for deaths of ranks that it does not wait for, and it, or a wait that has lasted
// half its timeout, asks the awaited rank for whom that one waits.
constexpr milliseconds kSearchAfter{500};
// The intervals of questions grow with the time waited between these.
constexpr milliseconds kAskEvery{50};
constexpr milliseconds kAskAtLeastEvery{1000};
// A rank that has not looked at its wait for so long was stopped.
constexpr milliseconds kHeldUp{100};
// A rank that has left a question unanswered for so long does not answer.
constexpr milliseconds kLongestPatience{2000};

bool is_of_init(const Wait& wait) { return wait.task != nullptr && wait.task->call.signature.issuer == Issuer::init; }

const char* setting_of_deadline(const Wait& wait) {
  return is_of_init(wait) ? "that of init (FCCL_INIT_TIMEOUT, initTimeoutMs)"
                          : "the communicator's timeout (FCCL_TIMEOUT, timeoutMs, fcclCommSetTimeout)";
}

LaneId lane_of(const Wait& wait) {
  return wait.task == nullptr ? kTransferLane : fccl::core::lane_of(wait.task->call.signature.collective);
}

WaitLine::Wanted wanted_by(const Wait& wait) { return {lane_of(wait), Clock::now() - wait.began}; }

double seconds(Clock::duration span) { return std::chrono::duration<double>(span).count(); }

}  // namespace

bool is_reached(const Wait& wait, const Awaited& awaited) {
  if (wait.catch_up) wait.catch_up.poll(wait.catch_up.context);
  return awaited.reached();
}

// A rank that waits for this one hears of the failure here, too: the way by the leaders may be blocked.
Result<void> WaitJudge::look(Wait& wait, const Awaited& awaited, const std::optional<Error>& network) {
  Result<void> judged = judge(wait, awaited, network);
  if (!judged && questioner_) questioner_->tell(judged.error());
  return judged;
}

Result<void> WaitJudge::judge(Wait& wait, const Awaited& awaited, const std::optional<Error>& network) {
  if (auto failed = failures_.first()) return fail(std::move(*failed));
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
  if (wait.awaited.rank != awaited.rank) {
    wait.unanswered = {};
    wait.next_question = std::min(wait.next_question, now + kLookInterval);
  }
  wait.awaited = awaited;
  show(wait, now);
  peers_.own_state().set_waiting(lane_of(wait), {to_ms(now), awaited.rank});
  if (cancel_check_ && now >= next_ask_) {
    next_ask_ = now + kLookInterval;
    if (auto wanted = cancel_check_(); !wanted) return fail(failures_.raise(std::move(wanted).error()));
  }
  if (awaited.rank < 0) {
    FCCL_TRY(look_for_any(wait, awaited));
  } else if (peers_.is_here(awaited.rank)) {
    FCCL_TRY(look_for_departure(wait, awaited));
    FCCL_TRY(look_at_other_lanes(wait, awaited.rank));
  } else {
    FCCL_TRY(look_at_remote_rank(wait, awaited, network));
  }
  FCCL_TRY(look_for_other_deaths(wait, now));
  FCCL_TRY(ask_awaited(wait, now));
  const Clock::duration waited = now - wait.began;
  if (waited >= std::min(kAnnounceAfter, wait.timeout / 2)) announce_wait(wait, awaited.rank);
  // A rank that was stopped itself may find its deadline passed, but what it awaited done.
  if (waited >= wait.timeout &&
      waited >= wait.timeout + report_steps(line_.end_of(awaited.rank, wanted_by(wait)).rank) * kReportStep &&
      !is_reached(wait, awaited))
    return fail(failures_.raise({wait.task != nullptr ? MessageKind::late_for_call : MessageKind::late_for_transfer,
                                 fmt::format("{}. The deadline is {}; look whether that rank is stopped, still "
                                             "computing, or has skipped the call",
                                             describe(wait, waited), setting_of_deadline(wait))}));
  if (waited >= kReportAfter && !wait.reported && wait.warns) {
    wait.reported = true;
    log(LogLevel::warn, with_code(describe(wait, waited), MessageKind::long_wait));
  }
  return {};
}

void WaitJudge::end_wait(Wait& wait) {
  announce_wait(wait, kNobody);
  if (wait.shown_since != Clock::time_point{}) statistics_->end_wait(lane_of(wait));
  wait.shown_since = {};
}

// The time is added from look to look, so a wait that ends within a millisecond costs nothing.
void WaitJudge::show(Wait& wait, Clock::time_point now) {
  const auto span = now - std::exchange(wait.looked, now);
  if (statistics_ == nullptr || is_of_init(wait)) return;
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
void WaitJudge::announce_wait(Wait& wait, int awaited) {
  if (wait.is_told == (awaited != kNobody)) return;
  wait.is_told = awaited != kNobody;
  peers_.own_state().waits_long[lane_of(wait)].store(awaited, std::memory_order_relaxed);
  failures_.wake_leader();
}

std::vector<LongWait> WaitJudge::local_waits() const {
  std::vector<LongWait> waits;
  for (const int rank : peers_.locals()) {
    LongWait wait{.rank = rank};
    for (const auto& awaited : peers_.state_of(rank).waits_long)
      if (wait.awaited < 0) wait.awaited = std::max(kNobody, static_cast<int>(awaited.load(std::memory_order_relaxed)));
    // A peer may have written anything, so its rank is checked.
    if (wait.awaited < peers_.count()) waits.push_back(wait);
  }
  return waits;
}

void WaitJudge::hear_of_wait(const LongWait& wait) {
  peers_.segment().awaited_beyond(wait.rank).store(wait.awaited, std::memory_order_relaxed);
}

// Any rank may still send, unless one has died, which ends every call sooner or later, or all others have left.
Result<void> WaitJudge::look_for_any(const Wait& wait, const Awaited& awaited) {
  bool all_left = peers_.count() > 1;
  for (int rank = 0; rank < peers_.count(); ++rank) {
    if (rank == peers_.rank()) continue;
    const bool died = liveness_.has_died(rank);
    all_left = all_left && liveness_.has_left(rank);
    if (died && !is_reached(wait, awaited))
      return fail(failures_.raise({MessageKind::died, fmt::format("{} died while rank {} waited for any rank in {}",
                                                                  peers_.describe(rank), peers_.rank(), describe_call(wait))}));
  }
  if (!all_left || is_reached(wait, awaited)) return {};
  return fail(
      failures_.raise({MessageKind::left,
                       fmt::format("all other ranks have finalized or destroyed the communicator while rank {} waited for any "
                                   "rank in {}",
                                   peers_.rank(), describe_call(wait))}));
}

Result<void> WaitJudge::look_for_departure(const Wait& wait, const Awaited& awaited) {
  const PeerStatus status = liveness_.status_of(awaited.rank);
  if (status == PeerStatus::present) return {};
  // The rank may have done its part before it left.
  if (is_reached(wait, awaited)) return {};
  const bool has_left = status == PeerStatus::left;
  const char* what = has_left ? "has finalized or destroyed the communicator" : "died";
  const MessageKind kind = has_left ? MessageKind::left : MessageKind::died;
  return fail(failures_.raise(
      {kind, fmt::format("{} {} while rank {} waited for it in {}; its last call was {}", peers_.describe(awaited.rank), what,
                         peers_.rank(), describe_call(wait), calls_.describe_last_call_of(awaited.rank))}));
}

Result<void> WaitJudge::look_at_other_lanes(const Wait& wait, int rank) {
  if (wait.task == nullptr || !calls_.is_on_another_lane(*wait.task, rank)) return {};
  return fail(failures_.raise(calls_.mismatch(*wait.task, rank)));
}

// Judges a wait for a rank of another host by the reports of that host and of the network.
Result<void> WaitJudge::look_at_remote_rank(Wait& wait, const Awaited& awaited, const std::optional<Error>& network) {
  const PeerStatus status = liveness_.status_of(awaited.rank);
  const bool may_come = status == PeerStatus::present || status == PeerStatus::unheard;
  if (may_come && !network) return {};
  const Clock::time_point now = Clock::now();
  if (wait.broken == Clock::time_point{}) wait.broken = now;
  if (now - wait.broken < kArrivalDelay || is_reached(wait, awaited)) return {};
  const std::string where = fmt::format("while rank {} waited for it in {}", peers_.rank(), describe_call(wait));
  const std::string who = peers_.describe(awaited.rank);
  const auto raised = [this](MessageKind kind, std::string text) { return fail(failures_.raise({kind, std::move(text)})); };
  switch (status) {
    case PeerStatus::left:
      return raised(MessageKind::left, fmt::format("{} has finalized or destroyed the communicator {}", who, where));
    case PeerStatus::died:
      return raised(MessageKind::died, fmt::format("{} died {}", who, where));
    case PeerStatus::out_of_reach: {
      const int reporter = liveness_.reporter_of(awaited.rank);
      return raised(MessageKind::died,
                    fmt::format("{} died, through whom {} was heard of, {}", peers_.describe(reporter), who, where));
    }
    case PeerStatus::present:
    case PeerStatus::unheard:
      break;
  }
  return raised(MessageKind::network_failed, fmt::format("the network to {} failed {}: {}", who, where, network->message));
}

// The awaited rank lives, but may wait for the dead rank in turn, or may have failed together with another communicator: no
// call of this communicator can succeed in the end. The dead rank may have done its part of this one.
Result<void> WaitJudge::look_for_other_deaths(Wait& wait, Clock::time_point now) {
  if (now - wait.began < kSearchAfter || now < wait.next_search) return {};
  wait.next_search = now + kLookInterval;
  FCCL_TRY(look_for_early_leavers(wait));
  if (!wait.dead) {
    wait.dead = liveness_.search(wait.searched_from);
    wait.dead_since = now;
  }
  if (!wait.dead || now - wait.dead_since < kArrivalDelay || is_reached(wait, wait.awaited)) return {};
  const int dead = *wait.dead;
  const std::string awaited = wait.awaited.rank < 0 ? "any rank" : peers_.describe(wait.awaited.rank);
  const std::string last_call =
      peers_.is_here(dead) ? fmt::format("; the last call of rank {} was {}", dead, calls_.describe_last_call_of(dead)) : "";
  return fail(
      failures_.raise({MessageKind::died, fmt::format("{} died while rank {} waited for {} in {}{}", peers_.describe(dead),
                                                      peers_.rank(), awaited, describe_call(wait), last_call)}));
}

// The awaited rank may wait in turn for a rank that left before this call, and no other host may hear of its failure: news pass
// through rank 0, whose process may have ended.
Result<void> WaitJudge::look_for_early_leavers(const Wait& wait) {
  const std::optional<int> leaver = wait.task != nullptr ? liveness_.left_before(wait.task->number) : std::nullopt;
  if (!leaver || is_reached(wait, wait.awaited)) return {};
  return fail(failures_.raise(
      {MessageKind::left,
       fmt::format("{} has finalized or destroyed the communicator while rank {} waited for {} in {}", peers_.describe(*leaver),
                   peers_.rank(), peers_.describe(wait.awaited.rank), describe_call(wait))}));
}

// The awaited rank may wait in turn, for a rank that this host hears of neither by news, which pass through rank 0, nor in
// time: so it is asked. A rank that was stopped itself has heard no answer meanwhile, and begins to listen anew.
Result<void> WaitJudge::ask_awaited(Wait& wait, Clock::time_point now) {
  const int rank = wait.awaited.rank;
  const Clock::duration waited = now - wait.began;
  if (!questioner_ || rank < 0 || peers_.is_here(rank) || is_of_init(wait)) return {};
  if (waited < std::min(kSearchAfter, wait.timeout / 2)) return {};
  FCCL_TRY(look_for_heard_failure());
  const bool was_stopped = now - std::exchange(wait.questioned, now) > kHeldUp;
  const ToldLine told = line_.told_of(rank);
  const bool is_own_verdict = told.end.rank == rank && told.end.state == LineState::silent;
  if (was_stopped || (!is_own_verdict && told.at_ms >= to_ms(wait.unanswered))) wait.unanswered = {};
  if (now >= wait.next_question) {
    const bool is_asked = questioner_->ask(rank, {lane_of(wait), waited});
    if (is_asked && wait.unanswered == Clock::time_point{}) wait.unanswered = now;
    wait.next_question =
        now + (is_asked ? std::clamp<Clock::duration>(waited / 8, kAskEvery, kAskAtLeastEvery) : kLookInterval);
  }
  const auto patience = std::clamp(wait.timeout / 8, kReportStep, kLongestPatience);
  if (wait.unanswered != Clock::time_point{} && now - wait.unanswered >= patience) line_.hear(rank, {rank, LineState::silent});
  return {};
}

// The thread that hears it must not log it.
Result<void> WaitJudge::look_for_heard_failure() {
  std::optional<Error> heard;
  {
    const std::lock_guard lock(mutex_);
    heard = std::exchange(heard_, std::nullopt);
  }
  if (!heard) return {};
  failures_.hear_of(*heard);
  return fail(failures_.first().value_or(std::move(*heard)));
}

WaitAnswer WaitJudge::answer(const WaitQuestion& question) const {
  if (auto failed = failures_.first()) return {.end = {peers_.rank()}, .call = {}, .failure = std::move(failed)};
  LineEnd end = line_.end_of(peers_.rank(), question);
  if (peers_.is_here(end.rank) && end.state == LineState::open) end.state = LineState::late;
  return {end, end.state == LineState::late ? calls_.last_known_of(end.rank) : std::nullopt, std::nullopt};
}

void WaitJudge::hear(int rank, const WaitAnswer& answer) {
  if (answer.failure) {
    const std::lock_guard lock(mutex_);
    heard_ = answer.failure;
    return;
  }
  if (peers_.is_here(rank) || answer.end.rank < 0 || answer.end.rank >= peers_.count()) return;
  if (answer.call && !peers_.is_here(answer.end.rank)) calls_.hear_of_last_call(answer.end.rank, *answer.call);
  line_.hear(rank, answer.end);
}

// Returns how many report steps to wait before blaming `rank`: 0 on our own host, 1 for another host's leader, 2 for any other
// rank there, whose leader reports first.
int WaitJudge::report_steps(int rank) const {
  if (rank < 0 || peers_.is_here(rank)) return 0;
  return peers_.leader_of(rank) == rank ? 1 : 2;
}

std::string WaitJudge::describe_call(const Wait& wait) const {
  return wait.task != nullptr ? calls_.describe(*wait.task) : calls_.describe(*wait.transfer);
}

std::string WaitJudge::describe(const Wait& wait, Clock::duration waited) const {
  if (wait.awaited.rank < 0)
    return fmt::format("rank {} has waited {:.3g} s for any rank in {}", peers_.rank(), seconds(waited), describe_call(wait));
  const LineEnd end = line_.end_of(wait.awaited.rank, wanted_by(wait));
  const int last = end.rank;
  const bool has_told = peers_.is_here(last) || end.state == LineState::late;
  std::string known = fmt::format("the last call of rank {} is {}{}", last,
                                  has_told ? calls_.describe_last_call_of(last) : "not known on this host",
                                  wait.task != nullptr ? calls_.describe_way_to(*wait.task, last) : "");
  if (!peers_.is_here(last) && liveness_.status_of(last) == PeerStatus::unheard)
    known = fmt::format("nothing has been heard of rank {} since {}, through whom it was heard of, has left", last,
                        peers_.describe(liveness_.reporter_of(last)));
  return fmt::format("rank {} has waited {:.3g} s for {}{} in {}; {}", peers_.rank(), seconds(waited),
                     peers_.describe(wait.awaited.rank), describe_line(wait.awaited.rank, end), describe_call(wait), known);
}

// Returns what stands behind the name of the first rank of a line.
std::string WaitJudge::describe_line(int first, const LineEnd& end) const {
  std::string via = end.rank == first ? "" : ", which waits for " + peers_.describe(end.rank);
  if (end.state == LineState::silent) return fmt::format("{}, {},", via, "which does not answer");
  if (end.state == LineState::circle) return fmt::format("{}, {},", via, "in a circle of ranks that wait for each other");
  return via;
}

}  // namespace fccl::core
