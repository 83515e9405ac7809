// TransferLane: one rank's side of all its sends and receives: what belongs together, in which order, and how it moves.
//
//   eager     what fits goes along with its notice into a slot of the receiver's, so the send ends without it
//   offered   anything else, and what finds no slot free, waits until its receive reads it in the sender's process, where that
//             is the faster, or grants it; then it goes in slices
//
// Every notice is taken out of the segment as it comes, so none stands in another one's way, whatever their tags.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "operations/transfer_operation.h"

namespace fccl {

class PeerMemory;
class Segment;
class Statistics;
class TransferPair;
class WireLane;
struct Notice;

// Owned by a communicator. Any thread may call; one at a time has the turn, and moves everybody's operations. After a failure
// of the communicator nothing moves any more.
class TransferLane {
 public:
  // `ranks`: those of this host as the communicator counts them; `local` is this one's place among them, `all` how many ranks
  // there are on all hosts.
  TransferLane(std::shared_ptr<Segment> segment, std::span<const int> ranks, int local, int all, Statistics& statistics);
  ~TransferLane();
  TransferLane(const TransferLane&) = delete;
  TransferLane& operator=(const TransferLane&) = delete;

  // Reaches the ranks of other hosts, by the lane whose members are all ranks; before the first operation.
  void span_hosts(std::unique_ptr<WireLane> wire, std::span<const int> ranks_here);
  // From here on what goes between this rank and another one of its host, `least` bytes or more, is read where it lies, if both
  // say so and the memory reaches all; before the first operation.
  void read_from(std::shared_ptr<const PeerMemory> memory, size_t least);
  // In a fork, what goes between hosts is the parent's.
  void leave_network_alone();
  // Hands what is for other hosts to the network, and tells them what has been taken, so that whoever leaves knows that nothing
  // is lost.
  void leave(Deadline deadline);
  // Why the network to a rank has failed, if it has.
  std::optional<Error> network_failure_of(int rank) const;

  // Gives an operation that starts later its place among those that share its order. By the thread that issues calls.
  void issue(TransferOperation& operation);
  // Starts it, and moves it as far as it goes; false while one that was issued before it, and shares its order, has not
  // started.
  bool start(TransferOperation& operation);
  // The turn of a thread that has several things to do in it. Others wait for its end, so it must not last.
  class Turn {
   public:
    explicit Turn(TransferLane& lane) : lane_(lane), lock_(lane.mutex_) {}
    // issue and start at once: false if it has its place, but has not started. A send that can go along with its notice goes;
    // all else is moved by progress.
    bool issue_and_start(TransferOperation& operation);
    void progress() { lane_.progress_in_turn(); }

   private:
    TransferLane& lane_;
    std::lock_guard<std::mutex> lock_;
  };
  // Moves what can be moved, unless another thread does.
  void progress();
  // The same, when the other thread is done.
  void catch_up();
  // Of an operation that has not ended: from here on nothing of it moves, and its memory is its owner's again.
  void withdraw(TransferOperation& operation);
  // Whoever issues says when an operation comes and, as the last that it does here, when it has gone; but not of those that a
  // call of the communicator waits for.
  void count_in() { outstanding_.fetch_add(1, std::memory_order_relaxed); }
  void count_out(size_t operations = 1) { outstanding_.fetch_sub(static_cast<int>(operations), std::memory_order_release); }
  bool is_idle() const { return outstanding_.load(std::memory_order_acquire) == 0; }

 private:
  struct Peer;
  struct Arrival;

  bool launch_in_turn(TransferOperation& operation);
  void progress_in_turn();
  void launch(TransferOperation& operation);
  void move(Peer& peer);
  void take_notices(Peer& peer);
  void keep_arrival(Peer& peer, const Notice& notice);
  void match(TransferOperation& operation, Peer& source, const Notice& notice, const std::byte* payload);
  void announce(Peer& peer);
  bool reads(Peer& peer, const TransferOperation& operation) const;
  void read_lent(Peer& peer);
  void grant(Peer& peer);
  void send_slices(Peer& peer);
  void receive_slices(Peer& peer);
  void finish(TransferOperation& operation);
  static void step(TransferOperation& operation);
  void drop_interest(const TransferOperation& operation);
  bool has_failed() const;

  std::mutex mutex_;  // the turn
  std::shared_ptr<Segment> segment_;
  std::unique_ptr<WireLane> wire_;  // null where all ranks share a host
  Statistics& statistics_;
  std::shared_ptr<const PeerMemory> memory_;  // null: nothing is read
  size_t least_read_ = 0;
  std::vector<Peer> peers_;  // by rank
  // By tag, each: operations that have a place, but have not started; receives that nothing has come for; what has come that no
  // receive has asked for.
  KeyedQueue<TransferOperation> issued_;
  KeyedQueue<TransferOperation> posted_;
  KeyedQueue<Arrival> arrivals_;
  std::vector<std::unique_ptr<Arrival>> spare_arrivals_;
  int any_source_ = 0;  // posted receives from any rank
  uint64_t offers_ = 0;
  std::atomic<int> outstanding_{0};
};

}  // namespace fccl
