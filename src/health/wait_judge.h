// WaitJudge: decides when a wait has lasted too long, which rank is to blame, and what the error says.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "health/wait_line.h"
#include "health/wait_question.h"
#include "os/clock.h"
#include "waiting/wait_limit.h"

namespace fccl::core {

class FailureBoard;
class KnownCalls;
class Liveness;
class Peers;
class Statistics;
struct Awaited;
struct LongWait;
struct Wait;

// A Control owns it. Any thread may call; each wait belongs to the thread that waits. It fails a wait by raising the
// communicator's first failure, and after a failure every look returns that.
class WaitJudge {
 public:
  WaitJudge(const Peers& peers, KnownCalls& calls, const Liveness& liveness, FailureBoard& failures)
      : peers_(peers), calls_(calls), liveness_(liveness), failures_(failures), line_(peers) {}

  // Runs the slow path of a wait of this rank: failures and aborts of other ranks; death or departure of the awaited rank; a
  // call of that rank that was made on the other lane; the deadline; and after 5 s one line in the log. `network`: the failure
  // of the network to the awaited rank, if any.
  Result<void> look(Wait& wait, const Awaited& awaited, const std::optional<Error>& network = {});
  // Follows every call that waited, successful or not.
  void end_wait(Wait& wait);

  // Makes `statistics`, which must outlive them, count and show waits from now on.
  void show_waits_by(Statistics& statistics) { statistics_ = &statistics; }
  // Sets the cancellation check that waits poll now and then. Called by one thread.
  void ask(CancelCheck cancel_check) { cancel_check_ = std::move(cancel_check); }

  // From now on a long wait for a rank of another host has it asked for whom it waits in turn. Called by one thread, before the
  // first wait of the user's calls.
  void ask_by(std::unique_ptr<WaitQuestioner> questioner) { questioner_ = std::move(questioner); }
  // Answers the question of another rank, from what this host knows; neither waits nor logs.
  WaitAnswer answer(const WaitQuestion& question) const;
  // Takes the answer of a rank of another host, which may hold anything; neither waits nor logs.
  void hear(int rank, const WaitAnswer& answer);

  // Lists the long waits of this host's ranks, for its leader to tell.
  std::vector<LongWait> local_waits() const;
  // Takes the report of a long wait on another host.
  void hear_of_wait(const LongWait& wait);

 private:
  Result<void> judge(Wait& wait, const Awaited& awaited, const std::optional<Error>& network);
  void show(Wait& wait, Clock::time_point now);
  void announce_wait(Wait& wait, int awaited);
  Result<void> look_for_any(const Wait& wait, const Awaited& awaited);
  Result<void> look_for_departure(const Wait& wait, const Awaited& awaited);
  Result<void> look_at_other_lanes(const Wait& wait, int rank);
  Result<void> look_at_remote_rank(Wait& wait, const Awaited& awaited, const std::optional<Error>& network);
  Result<void> look_for_other_deaths(Wait& wait, Clock::time_point now);
  Result<void> look_for_early_leavers(const Wait& wait);
  Result<void> ask_awaited(Wait& wait, Clock::time_point now);
  Result<void> look_for_heard_failure();
  int report_steps(int rank) const;
  std::string describe_call(const Wait& wait) const;
  std::string describe(const Wait& wait, Clock::duration waited) const;
  std::string describe_line(int first, const LineEnd& end) const;

  const Peers& peers_;
  KnownCalls& calls_;
  const Liveness& liveness_;
  FailureBoard& failures_;
  Statistics* statistics_ = nullptr;
  CancelCheck cancel_check_;
  Clock::time_point next_ask_{};
  WaitLine line_;
  std::unique_ptr<WaitQuestioner> questioner_;  // null on one host
  std::mutex mutex_;
  std::optional<Error> heard_;  // the failure that a rank of another host has told
};

}  // namespace fccl::core
