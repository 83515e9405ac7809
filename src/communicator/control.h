// Control: what a communicator knows beside its data: who its ranks are, who is dead or has left, and its first failure.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "communicator/bootstrap.h"
#include "node/phases.h"
#include "node/segment.h"
#include "system/clock.h"
#include "system/process_watch.h"
#include "system/wait.h"

namespace fccl {

// A rank of the communicator, and whether its process still lives.
struct Peer {
  Member member;
  std::shared_ptr<ProcessWatch> watch;
};

// The first number of a communicator's calls. Near the wrap of its lower half, and of the sequence of a lane, so that every run
// comes past it.
inline constexpr uint64_t kFirstNumber = 0xfffffff0;

// The call that waits, for what, and since when; what the slow path needs to judge it.
struct Wait {
  const Task& task;
  std::chrono::milliseconds timeout;
  Awaited awaited{};          // what the slow path last looked at
  Clock::time_point began{};  // when it first looked at that
  bool reported = false;
};

// Owned by a communicator. Any thread may call. Failures are sticky: the first one found by any rank becomes every rank's.
class Control {
 public:
  Control(std::string name, int rank, std::vector<Peer> peers, std::shared_ptr<Segment> segment)
      : name_(std::move(name)), rank_(rank), peers_(std::move(peers)), segment_(std::move(segment)) {}

  // The slow path of a wait of this rank: failures and aborts of others, death or departure of the awaited rank, a call of that
  // rank on the other lane that should have been this one, the deadline, and after 5 s one line in the log.
  Result<void> look(Wait& wait, const Awaited& awaited);

  // Whether the communicator has failed: one load.
  bool has_failed() const { return segment_->failure().first.load(std::memory_order_acquire) != 0; }
  std::optional<Error> failure() const;
  // Makes `error` the communicator's first failure unless it has one; returns the one that it has.
  Error raise(Error error);
  // The ranks' calls differ: raises the error that shows both.
  Error raise_mismatch(const Task& mine, int other);
  // Looks for peers that died without leaving, and raises their death.
  void look_for_deaths();
  void leave() { segment_->state(rank_).left.store(1, std::memory_order_release); }
  // What waits ask from now on, beside their own questions and less often: whether they are still wanted. By one thread.
  void ask(StillWanted still_wanted) { still_wanted_ = std::move(still_wanted); }

  // The text of failure() for fcclGetLastError: "" without one; lives as long as this.
  const char* failure_text();
  std::string describe_rank(int rank) const { return fccl::describe(peers_[rank].member); }

 private:
  bool has_left(int rank) const { return segment_->state(rank).left.load(std::memory_order_acquire) != 0; }
  CallRecord::Value last_call_of(int rank) const;
  std::string describe_last_call_of(int rank) const;
  std::string describe(const Task& task) const;
  int last_in_line(const Wait& wait, int rank) const;
  std::string describe(const Wait& wait, Clock::duration waited) const;
  Result<void> look_for_departure(const Wait& wait, const Awaited& awaited);
  Result<void> look_at_other_lane(const Wait& wait, int rank);

  std::string name_;
  int rank_;
  std::vector<Peer> peers_;  // by rank, this one included
  std::shared_ptr<Segment> segment_;
  StillWanted still_wanted_;
  Clock::time_point next_ask_{};
  std::mutex mutex_;
  std::optional<std::string> text_;
};

}  // namespace fccl
