// Control: what a communicator knows beside its data: who its ranks are, who is dead or has left, and its first failure.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/transfer.h"
#include "bootstrap/bootstrap.h"
#include "host_link/link_messages.h"
#include "node/phases.h"
#include "node/segment.h"
#include "system/clock.h"
#include "system/descriptor.h"
#include "system/process_watch.h"
#include "system/wait.h"
#include "system/wait_limit.h"

namespace fccl {

class Statistics;

// A rank of the communicator, and whether its process still lives; for a rank of another host, only what its leader reports.
struct Peer {
  Member member;
  std::shared_ptr<ProcessWatch> watch;  // null: of another host
  int local = -1;                       // its place among the ranks of this host
};

// The first number of a communicator's calls. Near the wrap of its lower half, and of the sequence of a lane, so that every run
// comes past it.
inline constexpr uint64_t kFirstNumber = 0xfffffff0;
// Init may make some calls before, which messages number as the first one.
inline constexpr uint64_t kEarliestNumber = kFirstNumber - 16;

// The call that waits, for what, and since when; what the slow path needs to judge it.
struct Wait {
  Wait(const Task& collective, std::chrono::milliseconds at_most) : task(&collective), timeout(at_most) {}
  Wait(const TransferEnd& end, std::chrono::milliseconds at_most, Poll look_again)
      : transfer(&end), timeout(at_most), catch_up(look_again) {}

  const Task* task = nullptr;  // one of the two
  const TransferEnd* transfer = nullptr;
  std::chrono::milliseconds timeout;
  Poll catch_up{};                  // what must be asked before what is awaited is looked at for the last time
  Awaited awaited{};                // what the slow path last looked at
  Clock::time_point began{};        // when it first looked at that
  Clock::time_point broken{};       // when it first found the awaited rank gone or out of reach
  Clock::time_point looked{};       // when it last did
  Clock::time_point shown_since{};  // on the page of the process; none: it is not
  Clock::time_point next_search{};  // for ranks that died though this wait is for another one
  size_t searched_from = 0;         // the place among the ranks of this host at which the next search begins
  std::optional<int> dead{};        // the rank that a search has found
  Clock::time_point dead_since{};   // when it did
  bool reported = false;
  bool is_told = false;  // to other hosts
  bool warns = true;     // whether the log is told of it after a while
};

// Whether what is awaited is there, after a last look at what only a look brings.
bool is_reached(const Wait& wait, const Awaited& awaited);

// Owned by a communicator. Any thread may call. Failures are sticky: the first one found by any rank becomes every rank's.
class Control {
 public:
  Control(std::string name, int rank, std::vector<Peer> peers, std::shared_ptr<Segment> segment)
      : name_(std::move(name)), rank_(rank), peers_(std::move(peers)), segment_(std::move(segment)) {
    for (const Peer& peer : peers_)
      if (peer.local >= 0) locals_.push_back(peer.member.rank);
  }

  // The slow path of a wait of this rank: failures and aborts of others, death or departure of the awaited rank, a call of that
  // rank on the other lane that should have been this one, the deadline, and after 5 s one line in the log. `network`: why the
  // network to the awaited rank has failed, if it has.
  Result<void> look(Wait& wait, const Awaited& awaited, const std::optional<Error>& network = {});

  // From now on waits are counted and shown by these, which must outlive them.
  void show_waits_by(Statistics& statistics) { statistics_ = &statistics; }
  // After a call that waited, be it well or not.
  void end_wait(Wait& wait);

  // Whether the communicator has failed: one load.
  bool has_failed() const { return segment_->failure().first.load(std::memory_order_acquire) != 0; }
  std::optional<Error> failure() const;
  // Makes `error` the communicator's first failure unless it has one; returns the one that it has.
  Error raise(Error error);
  // The ranks' calls differ: raises the error that shows both. `theirs`: as the network brought it from another host.
  Error raise_mismatch(const Task& mine, int other, const CallRecord::Value& theirs = {});
  // Tells the peers how far this rank is with its calls on GPU memory.
  void say_issued(uint64_t number) { segment_->state(local()).issued.store(number, std::memory_order_relaxed); }
  void say_begun(LaneId lane, uint64_t number) {
    segment_->state(local()).begun[lane].store(number, std::memory_order_relaxed);
  }
  // A rank sends another than that one expects, as `outcome` says of one of them: raises the error that shows both numbers.
  Error raise_other_counts(const Task& mine, const Outcome& outcome);
  // The two ends of a transfer differ: raises the error that shows both. `mine` is a receive from `source`.
  Error raise_difference(const TransferEnd& mine, int source, const Envelope& theirs);
  // Looks for peers that died without leaving, and raises their death.
  void look_for_deaths();
  // The same, of some peers of this host in each call, for a wait in which many ranks of a host ask now and then. By one
  // thread.
  void look_for_deaths_by_turns();
  // Who died without leaving, as far as this host knows.
  std::vector<int> dead_ranks() const;
  // The same of one rank, and whether it has left in good order.
  bool has_died(int rank) const;
  bool has_left(int rank) const {
    return is_here(rank) ? state_of(rank).left.load(std::memory_order_acquire) != 0 : fate_of(rank) == Fate::left;
  }
  // Of a rank of this host.
  ShrinkBoard& shrink_board(int rank) const { return segment_->state(peers_[rank].local).shrink; }
  void leave();
  // Written to whenever this rank fails or leaves, so that the leader of its host tells the other hosts.
  void wake_by(Descriptor wake) { wake_ = std::move(wake); }
  const Descriptor& wake() const { return wake_; }
  // Of the ranks of this host, for its leader to tell: who has left or died.
  std::vector<Departure> local_departures() const;
  std::vector<std::shared_ptr<ProcessWatch>> local_watches() const;
  // For whom the ranks of this host wait, if they have for long: also for its leader to tell.
  std::vector<LongWait> local_waits() const;
  // What is heard of a failure on another host, of ranks of other hosts, and that nothing more will be heard of a host;
  // `leader` is its first rank.
  void hear_of_failure(const Error& error);
  void hear_of_departure(int rank, Gone how);
  void hear_of_end(int leader, LinkEnd how);
  void hear_of_wait(const LongWait& wait);
  // What waits ask from now on, beside their own questions and less often: whether they are cancelled. By one thread.
  void ask(CancelCheck cancel_check) { cancel_check_ = std::move(cancel_check); }

  // The text of failure() for fcclGetLastError: "" without one; lives as long as this.
  const char* failure_text();
  int rank() const { return rank_; }
  std::string describe_rank(int rank) const { return fccl::describe(peers_[rank].member); }
  // "AllGather of 4 int8 (call 7) of communicator name".
  std::string describe(const Task& task) const;

 private:
  int local() const { return peers_[rank_].local; }
  bool is_here(int rank) const { return peers_[rank].local >= 0; }
  // Of ranks of this host.
  const RankState& state_of(int rank) const { return segment_->state(peers_[rank].local); }
  const LaneBoard& board_of(int rank, LaneId lane) const { return segment_->board(peers_[rank].local, lane); }
  bool offer(const Error& error);
  void tell_leader() const;
  CallRecord::Value last_call_of(int rank) const;
  std::string describe_last_call_of(int rank) const;
  std::string describe_call(const Wait& wait) const;
  void tell_hosts_of(Wait& wait, int awaited);
  int awaited_by(const Wait& wait, int rank) const;
  int last_in_line(const Wait& wait, int rank) const;
  std::string describe_way_to(const Task& task, int rank) const;
  std::string describe(const Wait& wait, Clock::duration waited) const;
  void show(Wait& wait, Clock::time_point now);
  void look_for_deaths_beyond();
  void look_at_watches(size_t first);
  size_t turn_behind(size_t first) const;
  std::vector<int> dead_among(size_t first) const;
  std::optional<int> dead_beyond() const;
  std::optional<int> search(Wait& wait) const;
  Result<void> look_for_other_deaths(Wait& wait, Clock::time_point now);
  Result<void> look_for_departure(const Wait& wait, const Awaited& awaited);
  Result<void> look_for_any(const Wait& wait, const Awaited& awaited);
  Result<void> look_beyond(Wait& wait, const Awaited& awaited, const std::optional<Error>& network);
  Fate fate_of(int rank) const { return segment_->fate(rank).load(std::memory_order_acquire); }
  bool share_a_host(int rank, int other) const { return peers_[rank].member.host == peers_[other].member.host; }
  int reporter_of(int rank, Fate of_speaker) const;
  int leader_of(int rank) const;
  int report_steps(int rank) const;
  Result<void> look_at_other_lanes(const Wait& wait, int rank);

  std::string name_;
  int rank_;
  std::vector<Peer> peers_;  // by rank, this one included
  std::vector<int> locals_;  // the ranks of this host
  std::shared_ptr<Segment> segment_;
  Statistics* statistics_ = nullptr;
  Descriptor wake_;
  CancelCheck cancel_check_;
  Clock::time_point next_ask_{};
  size_t next_watch_ = 0;  // of the looks by turns
  std::mutex mutex_;
  std::optional<std::string> text_;
};

}  // namespace fccl
