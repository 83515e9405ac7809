// The rules: nobody hangs, every survivor learns the same cause in time, and nothing is left.
#include "faults/judge.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>

namespace fccl::core::faults {
namespace {

constexpr double kSecond = 1000.0 * testing::kSlowdown;

class Judge {
 public:
  Judge(const Draw& draw, const Board& board, const Observation& seen) : draw_(draw), board_(board), seen_(seen) {}

  std::vector<std::string> judge() {
    if (!seen_.hang.empty()) found("hung:" + seen_.hang);
    if (!seen_.leftovers.empty()) found("left behind:" + seen_.leftovers);
    for (int rank = 0; rank < draw_.ranks; ++rank) {
      judge_end(rank);
      if (seen_.hang.empty() && !(draw_.kills() && draw_.is_victim(rank))) judge_outcome(rank);
    }
    if (seen_.hang.empty()) judge_agreement();
    return std::move(faults_);
  }

 private:
  const Report& report(int rank) const { return board_.reports[rank]; }
  std::string cause(int rank) const { return report(rank).cause.data(); }
  bool in_init() const { return draw_.moment == Moment::before_init || draw_.moment == Moment::in_init; }
  void found(const std::string& fault) { faults_.push_back(fault); }
  void found(int rank, const std::string& fault) {
    found("rank " + std::to_string(rank) + " " + fault + "; it had: code " + std::to_string(report(rank).code) + " \"" +
          cause(rank) + "\"");
  }

  void judge_end(int rank) {
    if (report(rank).complaint[0] != 0) found(rank, std::string("says: ") + report(rank).complaint.data());
    const int status = seen_.statuses[rank];
    const bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    bool expected = well;
    if (draw_.kills() && draw_.is_victim(rank)) {
      const int wanted = draw_.fault == Fault::segv ? SIGSEGV : SIGKILL;
      const bool by_signal = draw_.fault == Fault::kill || draw_.fault == Fault::kill_two || draw_.fault == Fault::segv;
      // At the end the victim may be through before the fault comes.
      expected = by_signal ? signal == wanted || (well && draw_.moment == Moment::at_end) : well;
    }
    if (!expected && seen_.hang.empty())
      found("rank " + std::to_string(rank) + " ended by signal " + std::to_string(signal) + ", status " +
            std::to_string(WEXITSTATUS(status)));
  }

  void judge_outcome(int rank) {
    const Report& its = report(rank);
    if (draw_.fault == Fault::stop_briefly) {
      if (its.failed_ns != 0) found(rank, "failed for a stop shorter than the deadline");
      return;
    }
    if (its.failed_ns == 0) {
      if (draw_.moment != Moment::at_end) found(rank, "never learned of the fault");
      return;
    }
    if (!has_right_code(rank)) found(rank, "has the wrong code");
    // One that was stopped itself only finds that it came too late.
    const bool was_stopped = draw_.stops() && draw_.is_victim(rank) && draw_.moment != Moment::in_collective;
    if (!was_stopped && !names_the_culprit(rank)) found(rank, "does not name the culprit");
    judge_time(rank);
  }

  bool has_right_code(int rank) const {
    const int code = report(rank).code;
    switch (draw_.fault) {
      case Fault::stop_for_long:
        // In init and split, the first rank that gives up leaves the others.
        return code == fcclTimeout || (code == fcclRemoteError && draw_.moment != Moment::in_collective);
      case Fault::revoke:
      case Fault::abort:
        return code == fcclAborted;
      case Fault::mismatch:
      case Fault::skip:
        return code == fcclInvalidUsage;
      default:
        // A rank that nobody has met is missed at the deadline.
        return code == fcclRemoteError || (code == fcclTimeout && missed_in_init(rank));
    }
  }

  bool missed_in_init(int rank) const { return in_init() && !report(rank).had_comm; }

  bool names(const std::string& text, int victim) const {
    if (victim < 0) return false;
    // In a part of a split ranks have other numbers, but the same processes.
    if (text.find("(pid " + std::to_string(seen_.pids[victim]) + " ") != std::string::npos) return true;
    // Some ranks whose own part is made wait for the next split, for a rank whose part waits for the stopped one.
    if (draw_.moment == Moment::in_split && draw_.fault == Fault::stop_for_long)
      return text.find("missing: rank") != std::string::npos || text.find("has finalized or destroyed") != std::string::npos ||
             text.find("in fcclCommSplit") != std::string::npos ||
             text.find("did not come for the shared") != std::string::npos;
    if (!in_init()) return false;
    const std::string number = std::to_string(victim);
    return text.find("rank " + number + ' ') != std::string::npos || text.find("rank " + number + ')') != std::string::npos ||
           text.find("rank " + number + '.') != std::string::npos || text.find("ranks ") != std::string::npos ||
           (victim == 0 && text.find("fcclGetUniqueId") != std::string::npos);
  }

  bool names_the_culprit(int rank) const {
    const std::string text = cause(rank);
    switch (draw_.fault) {
      case Fault::revoke:
      case Fault::abort:
        return text.find("rank " + std::to_string(draw_.victim) + " aborted") != std::string::npos;
      case Fault::mismatch:
        return text.find(shown_of(draw_.recipe)) != std::string::npos &&
               text.find(shown_of(differing(draw_))) != std::string::npos;
      case Fault::skip:
        return text.find(shown_of(draw_.recipe)) != std::string::npos;
      default:
        return names(text, draw_.victim) || names(text, draw_.second_victim);
    }
  }

  // From what moment on, and for how many milliseconds, a rank may not know yet.
  void judge_time(int rank) {
    int64_t since = 0;
    double allowed = kSecond;
    if (draw_.kills()) {
      since = seen_.gone_ns[draw_.victim];
      if (draw_.second_victim >= 0) since = std::min(since, seen_.gone_ns[draw_.second_victim]);
      if (missed_in_init(rank)) allowed += static_cast<double>(draw_.init_deadline.count());
    } else if (draw_.fault == Fault::stop_for_long) {
      since = seen_.fault_ns;
      // The stopped rank learns when it goes on.
      if (draw_.is_victim(rank)) return;
      allowed +=
          static_cast<double>(std::max(draw_.deadline, missed_in_init(rank) ? draw_.init_deadline : draw_.deadline).count());
    } else if (draw_.fault == Fault::revoke || draw_.fault == Fault::abort) {
      since = report(draw_.victim).fault_ns;
    } else {
      for (int other = 0; other < draw_.ranks; ++other) since = std::max<int64_t>(since, report(other).entered_ns);
    }
    const double took = static_cast<double>(report(rank).failed_ns - since) * 1e-6;
    if (took > allowed)
      found(rank, "learned of it after " + std::to_string(took) + " ms, more than " + std::to_string(allowed));
  }

  // All ranks of the communicator have one cause; on several hosts, those of each host. A rank whose handle is gone has it
  // behind the name of its call.
  void judge_agreement() {
    const int hosts = draw_.host_of.empty() ? 1 : 2;
    for (int host = 0; host < hosts; ++host) judge_agreement_on(host);
  }

  void judge_agreement_on(int host) {
    int first = -1;
    for (int rank = 0; rank < draw_.ranks; ++rank) {
      const Report& its = report(rank);
      if (!draw_.host_of.empty() && draw_.host_of[rank] != host) continue;
      if (its.failed_ns == 0 || !its.had_comm || (draw_.kills() && draw_.is_victim(rank))) continue;
      if (draw_.fault == Fault::abort && draw_.is_victim(rank)) continue;
      if (draw_.moment == Moment::in_split && draw_.fault == Fault::stop_for_long) continue;
      if (first < 0) first = rank;
      if (cause(rank) != cause(first))
        found(rank, "has another cause than rank " + std::to_string(first) + ": \"" + cause(first) + "\"");
    }
  }

  const Draw& draw_;
  const Board& board_;
  const Observation& seen_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> judge(const Draw& draw, const Board& board, const Observation& seen) {
  return Judge(draw, board, seen).judge();
}

}  // namespace fccl::core::faults
