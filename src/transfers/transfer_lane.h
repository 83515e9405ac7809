// TransferLane: one rank's side of all its sends and receives: matches them, keeps their order, and moves their bytes.
//
//   eager     a short message goes with its notice into a slot of the receiver's, so the send ends before its receive
//   offered   a longer message, or one that finds no free slot, waits for its receive. The receive reads it in the sender's
//             process where that is faster; otherwise it grants it, and the message goes in slices
//
// Every notice is taken out of the segment at once, so none blocks another one, whatever their tags.
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
#include "kernels/copy.h"
#include "transfers/transfer_operation.h"
#include "transfers/transfer_pair.h"

namespace fccl::core {

class NoticeLane;
class PeerMemory;
class Segment;
class Statistics;

// A communicator owns it. Any thread may call; one thread at a time has the turn, and moves the operations of all threads.
// After a failure of the communicator it moves nothing.
class TransferLane {
 public:
  // `ranks`: numbers in the communicator of this host's ranks; `local` is this one's place among them, `all` the number of
  // ranks on all hosts.
  TransferLane(std::shared_ptr<Segment> segment, std::span<const int> ranks, int local, int all, Statistics& statistics);
  ~TransferLane();
  TransferLane(const TransferLane&) = delete;
  TransferLane& operator=(const TransferLane&) = delete;

  // Lets it reach the ranks of other hosts, by a lane whose members are all ranks; called before the first operation.
  void span_hosts(std::unique_ptr<NoticeLane> network, std::span<const int> ranks_here);
  // From now on a transfer of at least `least` bytes within the host is read in the sender's memory, if both ends want that and
  // `memory` reaches all; called before the first operation.
  void read_from(std::shared_ptr<const PeerMemory> memory, size_t least);
  // Writes slots within the host, as those of lanes are written (LaneSlots::put); set before the first operation.
  CopyBytes put = copy_bytes;
  // In a fork, connections between hosts belong to the parent.
  void leave_network_alone();
  // Hands messages for other hosts to the network, and tells those hosts what was taken, so that a rank which leaves knows that
  // nothing is lost.
  void leave(Deadline deadline);
  // Returns the failure of the network to a rank, if any.
  std::optional<Error> network_failure_of(int rank) const;

  // Gives an operation that starts later its place among those that share its order. Called by the thread that issues calls.
  void issue(TransferOperation& operation);
  // Starts it, and moves it as far as it goes; false while an operation that was issued before it and shares its order has not
  // started.
  bool start(TransferOperation& operation);
  // The turn of a thread that does several things in it. Other threads wait for its end, so it must be short.
  class Turn {
   public:
    explicit Turn(TransferLane& lane) : lane_(lane), lock_(lane.mutex_) {}
    // Starts it, unless an operation that was issued before it and shares its order has not started: it then has its place
    // behind that one. A send that fits along with its notice is sent; progress moves everything else.
    bool start(TransferOperation& operation);
    void progress() { lane_.progress_in_turn(); }

   private:
    TransferLane& lane_;
    std::lock_guard<std::mutex> lock_;
  };
  // Moves what can be moved, unless another thread does.
  void progress();
  // Moves it once the other thread is done.
  void catch_up();
  // Takes back an operation that has not ended: from now on nothing of it moves, and its memory is its owner's again.
  void withdraw(TransferOperation& operation);
  // Counts operations issued on streams or in groups, so that finalize can wait for them. Call count_out last. Blocking
  // transfers are not counted, since their communicator's call waits for them.
  void count_in() { outstanding_.fetch_add(1, std::memory_order_relaxed); }
  void count_out(size_t operations = 1) { outstanding_.fetch_sub(static_cast<int>(operations), std::memory_order_release); }
  bool is_idle() const { return outstanding_.load(std::memory_order_acquire) == 0; }

 private:
  struct Peer;
  struct Arrival;

  void progress_in_turn();
  void begin_receive(TransferOperation& operation);
  void move(Peer& peer);
  void take_notices(Peer& peer);
  void keep_arrival(Peer& peer, const TransferPair::Incoming& next);
  void match(TransferOperation& operation, Peer& source, const TransferPair::Incoming& incoming);
  void announce(Peer& peer);
  bool reads(const Peer& peer, const TransferOperation& operation) const;
  void read_lent(Peer& peer);
  void grant(Peer& peer);
  void send_slices(Peer& peer);
  void receive_slices(Peer& peer);
  void finish(TransferOperation& operation);
  static int advance(TransferOperation& operation, const TransferPair::Moved& moved);
  static void step(TransferOperation& operation);
  void drop_interest(const TransferOperation& operation);
  bool has_failed() const;

  std::mutex mutex_;  // the turn
  std::shared_ptr<Segment> segment_;
  std::unique_ptr<NoticeLane> network_;  // null if all ranks share a host
  Statistics& statistics_;
  std::shared_ptr<const PeerMemory> memory_;  // null: no transfer is read in place
  size_t least_read_ = 0;
  std::vector<Peer> peers_;  // by rank
  // By tag: operations that have a place, but have not started; receives without a matching notice; and notices that no receive
  // has asked for.
  KeyedQueue<TransferOperation> issued_;
  KeyedQueue<TransferOperation> posted_;
  KeyedQueue<Arrival> arrivals_;
  std::vector<std::unique_ptr<Arrival>> spare_arrivals_;
  int any_source_ = 0;  // posted receives from any rank
  uint64_t offers_ = 0;
  std::atomic<int> outstanding_{0};
};

}  // namespace fccl::core
