// Control: the state of a communicator besides its data: its ranks, which of them are dead or have left, and its first failure.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/transfer.h"
#include "bootstrap/member.h"
#include "host/outcome.h"
#include "host/segment.h"
#include "host/task.h"
#include "host_link/link_messages.h"
#include "system/clock.h"
#include "system/descriptor.h"
#include "system/process_watch.h"
#include "system/wait.h"
#include "system/wait_limit.h"

namespace fccl::core {

class Statistics;

// A rank of the communicator, and the watch on its process; for a rank of another host there are only its leader's reports.
struct Peer {
  Member member;
  std::shared_ptr<ProcessWatch> watch;  // null: the rank is on another host
  int local = -1;                       // its place among the ranks of this host
};

// Number of a communicator's first call. It lies near the wrap of the lower half, and of a lane's sequence, so that every run
// passes the wrap.
inline constexpr uint64_t kFirstNumber = 0xfffffff0;
// Init may make some calls before it; their messages carry the number of the first call.
inline constexpr uint64_t kEarliestNumber = kFirstNumber - 16;

// The call that waits, the point that it waits for, and since when; the slow path judges the wait by it.
struct Wait {
  Wait(const Task& collective, std::chrono::milliseconds at_most) : task(&collective), timeout(at_most) {}
  Wait(const TransferEnd& end, std::chrono::milliseconds at_most, Poll look_again)
      : transfer(&end), timeout(at_most), catch_up(look_again) {}

  const Task* task = nullptr;  // either this or the transfer is set
  const TransferEnd* transfer = nullptr;
  std::chrono::milliseconds timeout;
  Poll catch_up{};                  // poll to run before the last look at what is awaited
  Awaited awaited{};                // the point that the slow path last looked at
  Clock::time_point began{};        // time of its first look at that point
  Clock::time_point broken{};       // time when it first found the awaited rank gone or out of reach
  Clock::time_point looked{};       // time of its last look
  Clock::time_point shown_since{};  // since when the process's page shows the wait; none: it does not
  Clock::time_point next_search{};  // time of the next search for deaths of ranks that this wait is not for
  size_t searched_from = 0;         // place among the ranks of this host at which the next search begins
  std::optional<int> dead{};        // rank that a search has found dead
  Clock::time_point dead_since{};   // time when it was found
  bool reported = false;
  bool is_told = false;  // other hosts have been told of the wait
  bool warns = true;     // the log gets a warning after a while
};

// True if the awaited point is reached, after a last poll for events that only a poll brings in.
bool is_reached(const Wait& wait, const Awaited& awaited);

// A communicator owns it. Any thread may call. Failures are sticky: the first failure that any rank finds becomes every rank's.
class Control {
 public:
  Control(std::string name, int rank, std::vector<Peer> peers, std::shared_ptr<Segment> segment)
      : name_(std::move(name)), rank_(rank), peers_(std::move(peers)), segment_(std::move(segment)) {
    for (const Peer& peer : peers_)
      if (peer.local >= 0) locals_.push_back(peer.member.rank);
  }

  // Runs the slow path of a wait of this rank: failures and aborts of other ranks; death or departure of the awaited rank; a
  // call of that rank that was made on the other lane; the deadline; and after 5 s one line in the log. `network`: the failure
  // of the network to the awaited rank, if any.
  Result<void> look(Wait& wait, const Awaited& awaited, const std::optional<Error>& network = {});

  // Makes `statistics`, which must outlive them, count and show waits from now on.
  void show_waits_by(Statistics& statistics) { statistics_ = &statistics; }
  // Follows every call that waited, successful or not.
  void end_wait(Wait& wait);

  // True if the communicator has failed: costs one load.
  bool has_failed() const { return segment_->failure().first.load(std::memory_order_acquire) != 0; }
  std::optional<Error> failure() const;
  // Makes `error` the communicator's first failure unless it has one; returns its first failure.
  Error raise(Error error);
  // Handles calls that differ between ranks: raises the error that shows both. `theirs`: the other call, if the network brought
  // it from another host.
  Error raise_mismatch(const Task& mine, int other, const CallRecord::Value& theirs = {});
  // Tells the peers how far this rank is with its calls on GPU memory.
  void say_issued(uint64_t number) { segment_->state(local()).issued.store(number, std::memory_order_relaxed); }
  void say_begun(LaneId lane, uint64_t number) {
    segment_->state(local()).begun[lane].store(number, std::memory_order_relaxed);
  }
  // Handles a block that one rank sends with another length than its receiver expects, as `theirs` says: raises the error that
  // shows both lengths.
  Error raise_other_counts(const Task& mine, const OtherCounts& theirs);
  // Handles a send and a receive that differ: raises the error that shows both. `mine` is a receive from `source`.
  Error raise_difference(const TransferEnd& mine, int source, const Envelope& theirs);
  // Looks for peers that died without leaving, and raises their deaths.
  void look_for_deaths();
  // Looks at only some peers of this host in each call, since in such a wait many ranks of a host look. Called by one thread.
  void look_for_some_deaths();
  // Lists the ranks that died without leaving, as far as this host knows.
  std::vector<int> dead_ranks() const;
  // Say whether one rank has died without leaving, or has left in good order.
  bool has_died(int rank) const;
  bool has_left(int rank) const {
    return is_here(rank) ? state_of(rank).left.load(std::memory_order_acquire) != 0 : status_of(rank) == PeerStatus::left;
  }
  // Takes a rank of this host.
  ShrinkBoard& shrink_board(int rank) const { return segment_->state(peers_[rank].local).shrink; }
  void leave();
  // The event that this rank raises when it fails or leaves, so that the leader of its host tells the other hosts.
  void wake_by(Descriptor wake) { wake_ = std::move(wake); }
  const Descriptor& wake() const { return wake_; }
  // List the ranks of this host that have left or died, for its leader to tell, and the watches on them.
  std::vector<Departure> local_departures() const;
  std::vector<std::shared_ptr<ProcessWatch>> local_watches() const;
  // Lists the long waits of this host's ranks, also for its leader to tell.
  std::vector<LongWait> local_waits() const;
  // Take news of other hosts: a failure, the departure of a rank, and that a host, whose first rank is `leader`, will not be
  // heard of again.
  void hear_of_failure(const Error& error);
  void hear_of_departure(int rank, PeerStatus how);
  void hear_of_end(int leader, LinkEnd how);
  void hear_of_wait(const LongWait& wait);
  // Sets the cancellation check that waits poll now and then. Called by one thread.
  void ask(CancelCheck cancel_check) { cancel_check_ = std::move(cancel_check); }

  // Returns the text of failure() for fcclGetLastError: "" without a failure; valid as long as this object lives.
  const char* failure_text();
  int rank() const { return rank_; }
  std::string describe_rank(int rank) const { return fccl::core::describe(peers_[rank].member); }
  // Returns "AllGather of 4 int8 (call 7) of communicator name".
  std::string describe(const Task& task) const;

 private:
  int local() const { return peers_[rank_].local; }
  bool is_here(int rank) const { return peers_[rank].local >= 0; }
  // Take a rank of this host.
  const RankState& state_of(int rank) const { return segment_->state(peers_[rank].local); }
  const LaneBoard& board_of(int rank, LaneId lane) const { return segment_->board(peers_[rank].local, lane); }
  bool offer(const Error& error);
  void tell_leader() const;
  CallRecord::Value last_call_of(int rank) const;
  std::string describe_last_call_of(int rank) const;
  std::string describe_call(const Wait& wait) const;
  void announce_wait(Wait& wait, int awaited);
  int awaited_by(const Wait& wait, int rank) const;
  int end_of_wait_chain(const Wait& wait, int rank) const;
  std::string describe_way_to(const Task& task, int rank) const;
  std::string describe(const Wait& wait, Clock::duration waited) const;
  void show(Wait& wait, Clock::time_point now);
  void look_for_remote_deaths();
  void look_at_watches(size_t first);
  size_t next_turn(size_t first) const;
  std::vector<int> dead_among(size_t first) const;
  std::optional<int> find_remote_dead() const;
  std::optional<int> search(Wait& wait) const;
  Result<void> look_for_other_deaths(Wait& wait, Clock::time_point now);
  Result<void> look_for_departure(const Wait& wait, const Awaited& awaited);
  Result<void> look_for_any(const Wait& wait, const Awaited& awaited);
  Result<void> look_at_remote_rank(Wait& wait, const Awaited& awaited, const std::optional<Error>& network);
  PeerStatus status_of(int rank) const { return segment_->peer_status(rank).load(std::memory_order_acquire); }
  bool share_a_host(int rank, int other) const { return peers_[rank].member.host == peers_[other].member.host; }
  int reporter_of(int rank, PeerStatus of_speaker) const;
  int leader_of(int rank) const;
  int report_steps(int rank) const;
  Result<void> look_at_other_lanes(const Wait& wait, int rank);

  std::string name_;
  int rank_;
  std::vector<Peer> peers_;  // by rank, including this one
  std::vector<int> locals_;  // the ranks of this host
  std::shared_ptr<Segment> segment_;
  Statistics* statistics_ = nullptr;
  Descriptor wake_;
  CancelCheck cancel_check_;
  Clock::time_point next_ask_{};
  size_t next_watch_ = 0;  // begin of the next look by turns
  std::mutex mutex_;
  std::optional<std::string> text_;
};

}  // namespace fccl::core
